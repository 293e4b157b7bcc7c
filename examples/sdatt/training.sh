# How the recurrent systems of Chen et al. (2018) are trained in the paper, on any data: shared by the recipes sdatt and
# wmt14, whose settings.sh source it.
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
PAPER_SYSTEMS=(global_att local_att flexible_att chen17 sdatt global_plus_local global_plus_flexible global_plus_chen17
    global_plus_sdatt)
# The base model has embeddings and an output layer of its own for each language, as in Nematus.
PAPER_DIMENSIONS=(--untied-output --output-bias)
# Sec. 4.2, and what is not said there as in Nematus, whose loss is the mean over sentences: hence --sentence-avg, without
# which the clipping of gradients would mean something else.
PAPER_TRAINING=(--criterion cross_entropy --sentence-avg --optimizer adadelta --adadelta-rho 0.95 --adadelta-eps 1e-6
    --lr-scheduler fixed --clip-norm 1.0 --variational-dropout --recurrent-dropout 0.2)
