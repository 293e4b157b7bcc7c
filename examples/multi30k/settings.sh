# Every setting can be overridden from the environment.
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
: "${OUT:=outputs/multi30k}"        # everything is written below
: "${SOURCE:=en}" "${TARGET:=de}"
: "${MERGES:=8000}"                 # joint BPE merges
: "${PASCAL_HEADS:=2}" "${PARENT_IGNORING:=0.1}"
: "${SIZE:=cpu}"                    # cpu: the small model of the leaderboard; gpu: the usual Multi30k model
: "${BEAM:=5}"
: "${WORKERS:=2}"
: "${DATA:=}"                       # folder of a local copy, instead of downloading it; its *.conllu.gz are used if there
: "${STANZA_TAGGER:=}" "${STANZA_PARSER:=}" # model files, instead of Stanza's own models
: "${PARSE_DEVICE:=}"               # cpu, cuda, … (default: a GPU if there is one)
SYSTEMS=("${TRANSFORMERS[@]}") SPLITS=(valid test test1)

case "$SIZE" in
cpu)
    : "${MAX_EPOCH:=60}" "${MAX_TOKENS:=4096}" "${LR:=5e-3}" "${WARMUP:=2000}"
    DIMENSIONS=(--encoder-layers 4 --decoder-layers 4 --encoder-embed-dim 128 --decoder-embed-dim 128
        --encoder-ffn-embed-dim 256 --decoder-ffn-embed-dim 256 --encoder-attention-heads 4
        --decoder-attention-heads 4)
    DEVICE=(--cpu)
    ;;
gpu)
    : "${MAX_EPOCH:=60}" "${MAX_TOKENS:=4096}" "${LR:=7e-4}" "${WARMUP:=2000}"
    DIMENSIONS=(--encoder-layers 6 --decoder-layers 6 --encoder-embed-dim 256 --decoder-embed-dim 256
        --encoder-ffn-embed-dim 1024 --decoder-ffn-embed-dim 1024 --encoder-attention-heads 4
        --decoder-attention-heads 4)
    DEVICE=(--fp16)
    ;;
*) stop "SIZE=$SIZE: choose cpu or gpu" ;;
esac
TEXT="$OUT/text" BPE="$OUT/bpe"

# Text and trees of a split: multi30k_split SPLIT NAME_THERE
multi30k_split() {
    multi30k_text "$TEXT" "$1" "$2"
    local trees="$TEXT/$1.$SOURCE.conllu"
    [[ -s "$trees.gz" || -s "$trees" ]] && return
    if [[ -n "$DATA" && -f "$DATA/$2.$SOURCE.conllu.gz" ]]; then
        run cp "$DATA/$2.$SOURCE.conllu.gz" "$trees.gz"
    else
        run fairseq-syntax parse --input "$TEXT/$1.$SOURCE" --output "$trees" --parser-language "$SOURCE" \
            ${STANZA_TAGGER:+--parser-tagger "$STANZA_TAGGER"} ${STANZA_PARSER:+--parser-model "$STANZA_PARSER"} \
            ${PARSE_DEVICE:+--parser-device "$PARSE_DEVICE"}
    fi
}

prepare() {
    local split language trees
    run mkdir -p "$TEXT" "$BPE"
    multi30k_split train train
    multi30k_split valid val
    multi30k_split test test_2016_flickr
    multi30k_split test1 test_2017_flickr
    run subword-nmt learn-joint-bpe-and-vocab -s "$MERGES" --input "$TEXT/train.$SOURCE" "$TEXT/train.$TARGET" \
        -o "$OUT/bpe.codes" --write-vocabulary "$OUT/vocab.$SOURCE" "$OUT/vocab.$TARGET"
    for split in train valid test test1; do
        for language in "$SOURCE" "$TARGET"; do
            run subword-nmt apply-bpe -c "$OUT/bpe.codes" \
                --input "$TEXT/$split.$language" --output "$BPE/$split.$language"
        done
        # trees are of words: they serve any segmentation
        for trees in "$TEXT/$split.$SOURCE".conllu*; do
            run cp "$trees" "$BPE/"
        done
    done

    run fairseq-syntax preprocess --source-lang "$SOURCE" --target-lang "$TARGET" --joined-dictionary --workers "$WORKERS" \
        --trainpref "$BPE/train" --validpref "$BPE/valid" --testpref "$BPE/test,$BPE/test1" \
        --destdir "$OUT/data-bin" --overwrite
    run cp "$OUT/bpe.codes" "$OUT/data-bin/codes" # for words of treebanks

    multitask_data "$BPE" "$OUT/bpe-multitask" "$OUT/data-bin-multitask" valid test test1
}

train() {
    check_system "${1:-}"
    system_options "$1" iwslt_de_en "$PASCAL_HEADS" "$PARENT_IGNORING" "$OUT/data-bin"
    run fairseq-train "$DATA_BIN" --user-dir "$USER_DIR" "${ARCH[@]}" "${DIMENSIONS[@]}" "${SHARING[@]}" "${DEVICE[@]}" \
        --source-lang "$SOURCE" --target-lang "$TARGET" --criterion "$CRITERION" --label-smoothing 0.1 \
        --dropout 0.3 --optimizer adam --adam-betas '(0.9, 0.98)' --clip-norm 1.0 --lr "$LR" \
        --lr-scheduler inverse_sqrt --warmup-updates "$WARMUP" --max-tokens "$MAX_TOKENS" --max-epoch "$MAX_EPOCH" \
        --seed "$SEED" --num-workers 0 --log-format simple --log-interval 100 --no-epoch-checkpoints \
        --save-dir "$OUT/checkpoints/$1-$SEED" --log-file "$OUT/$1-$SEED.log" "${@:2}"
}

evaluate() {
    check_system "${1:-}"
    system_options "$1" iwslt_de_en "$PASCAL_HEADS" "$PARENT_IGNORING" "$OUT/data-bin"
    multi30k_evaluate "$TEXT" "$1" "${2:-test}" --max-tokens 4096
}
