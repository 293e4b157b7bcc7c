# Every setting can be overridden from the environment, and so can those of ../wmt.sh (text, trees, GPUs) and ../common.sh. Numbers are those of Chen et al. (2018), Sec. 4, unless said
# otherwise.
: "${OUT:=outputs/wmt14}"           # everything is written below
: "${SOURCE:=en}" "${TARGET:=de}"
: "${MERGES:=50000}"                # joint BPE merges; the paper has the 50,000 most frequent words of each language
: "${VALID_SET:=wmt12}" "${TEST_SET:=wmt13 wmt14/full wmt15}" # newstest2012; 2013 (test), 2014 (test1), 2015 (test2)
: "${BATCH_SIZE:=80}"               # sentences per update, on all GPUs together
: "${LR:=1.0}"                      # as in Nematus: Adadelta finds the size of a step by itself
: "${MAX_UPDATE:=400000}"
: "${SAVE_UPDATES:=10000}"          # ours, as in Nematus
: "${BEAM:=12}" "${LENPEN:=1}"      # the length penalty is ours
: "${SHARDS:=8}"                    # 4.4 million sentences to parse
: "${MULTITASK=}"                   # that system is not in the paper
source "$(dirname "${BASH_SOURCE[0]}")/../wmt.sh"
source "$(dirname "${BASH_SOURCE[0]}")/../sdatt/training.sh"
SYSTEMS=("${PAPER_SYSTEMS[@]}")

# Europarl v7, Common Crawl, News Commentary v9
text() {
    prepare_text https://www.statmt.org/europarl/v7/de-en.tgz \
        https://www.statmt.org/wmt13/training-parallel-commoncrawl.tgz \
        https://www.statmt.org/wmt14/training-parallel-nc-v9.tgz -- \
        "$OUT/archives/europarl-v7.de-en" "$OUT/archives/commoncrawl.de-en" \
        "$OUT/archives/training/news-commentary-v9.de-en"
}

# Sizes are the defaults of the architectures.
train() {
    check_system "${1:-}"
    train_sentences "$1" "${PAPER_DIMENSIONS[@]}" "${PAPER_TRAINING[@]}" --lr "$LR" --max-update "$MAX_UPDATE" \
        --log-format simple --log-interval 100 --save-interval-updates "$SAVE_UPDATES" --keep-interval-updates 1 \
        --no-epoch-checkpoints "${@:2}"
}

# BLEU, cased and, as in the paper, regardless of letter case
evaluate() {
    check_system "${1:-}"
    translate "$1" "${2:-test}" "$DATA" checkpoint_best.pt
    score "$NAME" "${2:-test}"
    run_to "$NAME.lc.bleu" sacrebleu -t "$(newstest "${2:-test}")" -l "$PAIR" --input "$NAME.$TARGET" --metrics bleu --lowercase
    [[ -n "$DRY_RUN" ]] || cat "$NAME.lc.bleu"
}
