# Every setting can be overridden from the environment.
source "$(dirname "${BASH_SOURCE[0]}")/training.sh"
: "${OUT:=outputs/sa_nmt}"          # everything is written below
: "${SOURCE:=en}" "${TARGET:=de}"   # or the other way round: one data directory serves both
: "${MERGES:=5000}"                 # BPE merges of each language; the paper does not join them
: "${SIZE:=cpu}"                    # cpu: fits two cores; paper: the paper's size and batch
: "${BEAM:=5}"
: "${WORKERS:=2}"
: "${DATA:=}"                       # folder of a local copy, instead of downloading it
SYSTEMS=("${SA_SYSTEMS[@]}") SPLITS=(valid test test1)
TEXT="$OUT/text" BPE="$OUT/bpe"
PAIR="$SOURCE-$TARGET"
DATA_BIN="$OUT/data-bin"

case "$SIZE" in
cpu)
    : "${MAX_EPOCH:=10}" "${BATCH_SIZE:=64}"
    # one layer: with two of this size, attention settles on a position before words tell annotations apart
    DIMENSIONS=(--encoder-layers 1 --encoder-embed-dim 256 --encoder-hidden-size 128
        --decoder-layers 1 --decoder-embed-dim 256 --decoder-hidden-size 256 --init-range 0.1)
    DEVICE=(--cpu)
    ;;
paper)
    : "${MAX_EPOCH:=100}" "${BATCH_SIZE:=32}"
    DIMENSIONS=()
    DEVICE=()
    ;;
*) stop "SIZE=$SIZE: choose cpu or paper" ;;
esac

# No parses: trees are latent.
prepare() {
    local language split
    run rm -rf "$DATA_BIN"
    run mkdir -p "$TEXT" "$BPE" "$DATA_BIN"
    multi30k_text "$TEXT" train train
    multi30k_text "$TEXT" valid val
    multi30k_text "$TEXT" test test_2016_flickr
    multi30k_text "$TEXT" test1 test_2017_flickr
    for language in en de; do
        run subword-nmt learn-bpe -s "$MERGES" --input "$TEXT/train.$language" --output "$DATA_BIN/codes.$language"
        for split in train valid test test1; do
            run subword-nmt apply-bpe -c "$DATA_BIN/codes.$language" \
                --input "$TEXT/$split.$language" --output "$BPE/$split.$language"
        done
    done
    run fairseq-preprocess --source-lang en --target-lang de --workers "$WORKERS" --trainpref "$BPE/train" \
        --validpref "$BPE/valid" --testpref "$BPE/test,$BPE/test1" --destdir "$DATA_BIN"
}

# The learning rate is halved whenever the validation loss is no better than its best, and training ends with the fifth
# time (Tran & Bisk 2018, Sec. 4.3) or after MAX_EPOCH.
train() {
    check_system "${1:-}"
    run fairseq-train "$DATA_BIN" --user-dir "$USER_DIR" --arch "$1" "${DIMENSIONS[@]}" "${DEVICE[@]}" \
        --source-lang "$SOURCE" --target-lang "$TARGET" "${SA_TRAINING[@]}" --batch-size "$BATCH_SIZE" \
        --max-epoch "$MAX_EPOCH" --seed "$SEED" --num-workers 0 \
        --save-dir "$OUT/checkpoints/$PAIR-$1-$SEED" --log-file "$OUT/$PAIR-$1-$SEED.log" "${@:2}"
}

evaluate() {
    check_system "${1:-}"
    multi30k_evaluate "$TEXT" "$PAIR-$1" "${2:-test}" --batch-size 32
}

# What trees a trained system has found, in $OUT/trees and printed as tables: trees SYSTEM
#   UD_EN, UD_DE    treebank with which the trees of English and German source sentences are compared, such as the test
#                   sets of UD English-EWT and German-GSD: CoNLL-U, plain or .gz; without it, nothing is compared
#   TARGET_CONLLU   tagged target side of the test set: which tags have the highest gates
#   SENTENCE        number of the sentence of the test set to draw
trees() {
    local system="${1:-}" folder treebank words model
    : "${UD_EN:=}" "${UD_DE:=}" "${TARGET_CONLLU:=}" "${SENTENCE:=3}"
    check_system "$system"
    folder="$OUT/trees/$PAIR-$system-$SEED"
    model=("$DATA_BIN" --path "$OUT/checkpoints/$PAIR-$system-$SEED/checkpoint_best.pt" "${DEVICE[@]}")
    # words of a treebank as the model knows them; German text has "im", its treebank has "in" and "dem", too
    case "$SOURCE" in
    en) treebank="$UD_EN" words=() ;;
    de) treebank="$UD_DE" words=(--collapse-ranges) ;;
    *) treebank="" words=() ;;
    esac

    run mkdir -p "$folder"
    if [[ -n "$treebank" ]]; then
        run_to "$folder/attachment.txt" fairseq-syntax attachment "${model[@]}" --gold "$treebank" "${words[@]}" \
            --by deprel
        run fairseq-syntax look "${model[@]}" --input "$treebank" "${words[@]}" --output "$folder/treebank.conllu" --overwrite
        [[ -n "$DRY_RUN" ]] || cat "$folder/attachment.txt"
    else
        echo "no treebank for source language $SOURCE (UD_EN, UD_DE): trees are drawn, not compared" >&2
    fi
    [[ -z "$TARGET_CONLLU" ]] ||
        run_to "$folder/gates.txt" fairseq-syntax look "${model[@]}" --subset test --tags "$TARGET_CONLLU"
    run fairseq-syntax look "${model[@]}" --subset test --sentence "$SENTENCE" --draw "$folder" --overwrite
    echo "files: $folder" >&2
}
