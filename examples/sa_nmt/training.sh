# How the systems of Tran & Bisk (2018) are trained, on any data: shared by the recipes sa_nmt and wmt17, whose
# settings.sh source it.
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
SA_SYSTEMS=(nmt_lstm fa_nmt fa_nmt_shared sa_nmt sa_nmt_shared sa_nmt_hard sa_nmt_1set)
# Sec. 4.3: the learning rate is halved whenever an evaluation is no better than the best, and training ends with the
# fifth time (1e-3 / 2^5 < 3.2e-5). The clipping of gradients is the authors' code's, as are the loss of a sentence, without
# which it would never clip, and the bias of the output layer.
SA_TRAINING=(--criterion cross_entropy --sentence-avg --output-bias --dropout 0.3
    --optimizer adam --clip-norm 5.0 --lr 1e-3 --lr-scheduler reduce_lr_on_plateau --lr-shrink 0.5 --lr-patience 0
    --lr-threshold 0 --stop-min-lr 3.2e-5 --log-format simple --log-interval 100 --no-epoch-checkpoints)
