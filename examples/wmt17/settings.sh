# Every setting can be overridden from the environment, and so can those of ../wmt.sh (text, GPUs) and ../common.sh. Numbers are those of Tran & Bisk (2018), Sec. 4, unless said otherwise.
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
: "${SOURCE:=en}" "${TARGET:=de}"   # SOURCE=de TARGET=en for the other direction: one data directory serves both
case "$SOURCE-$TARGET" in
en-de | de-en) ;;
en-ru | ru-en) # 2.1M sentences / 32 / 5,000 updates; newstest2016 is for validation
    : "${OUT:=outputs/wmt17-ru}" "${VALID_SET:=wmt16}" "${TEST_SET:=wmt17}" "${EPOCH_PARTS:=13}"
    ;;
*) stop "SOURCE=$SOURCE TARGET=$TARGET: choose en and de, or en and ru" ;;
esac
: "${OUT:=outputs/wmt17}"           # everything is written below
: "${MERGES:=32000}"                # BPE merges of each language; the paper does not join them
: "${TEST_SET:=wmt16 wmt17}"        # newstest2016 (split test) and newstest2017 (split test1)
: "${BATCH_SIZE:=32}"               # sentences per update, on all GPUs together
: "${EPOCH_PARTS:=18}"              # evaluations in an epoch: 5.9M sentences / 32 / 10,000 updates
: "${BEAM:=5}" "${LENPEN:=1}"       # the paper does not say
source "$(dirname "${BASH_SOURCE[0]}")/../wmt.sh"
source "$(dirname "${BASH_SOURCE[0]}")/../sa_nmt/training.sh"
DATA="$OUT/data-bin"
SYSTEMS=("${SA_SYSTEMS[@]}")

# English and German: see wmt17_text. English and Russian: Common Crawl, News Commentary v12, and Yandex' corpus in YANDEX.
text() {
    if [[ " ${LANGUAGES[*]} " != *" ru "* ]]; then
        wmt17_text
        return
    fi
    there "${YANDEX:-}/corpus.en_ru.1m.ru" \
        "give the folder of Yandex' parallel corpus, YANDEX=…; its owners give it out: https://translate.yandex.ru/corpus"
    prepare_text https://www.statmt.org/wmt13/training-parallel-commoncrawl.tgz \
        https://data.statmt.org/wmt17/translation-task/training-parallel-nc-v12.tgz -- \
        "$OUT/archives/commoncrawl.ru-en" "$OUT/archives/training/news-commentary-v12.ru-en" \
        "${YANDEX:-YANDEX}/corpus.en_ru.1m"
}

# Words of each language are cut by its own codes.
binarize() {
    local language
    run mkdir -p "$BPE"
    for language in "$SOURCE" "$TARGET"; do
        unless_there "$OUT/codes.$language" run_filter "$TEXT/train.$language" "$OUT/codes.$language" \
            subword-nmt learn-bpe -s "$MERGES"
    done
    apply_codes "$OUT/codes.%"
    run rm -rf "$DATA"
    run fairseq-preprocess --source-lang "${LANGUAGES[1]}" --target-lang "${LANGUAGES[0]}" --workers "$WORKERS" --trainpref "$BPE/train" \
        --validpref "$BPE/valid" --testpref "$(test_prefixes "$BPE")" --destdir "$DATA"
    run cp "${LANGUAGES[@]/#/$OUT/codes.}" "$DATA" # for words of treebanks
}

# For both directions; no parses, trees are latent.
prepare() {
    case "${1:-all}" in
    all)
        text
        binarize
        ;;
    text | binarize) "$1" ;;
    *) stop "step $1: choose text or binarize; nothing does both" ;;
    esac
}

# Sizes are the defaults of the architectures.
train() {
    check_system "${1:-}"
    train_sentences "$1" "${SA_TRAINING[@]}" --epoch-parts "$EPOCH_PARTS" "${@:2}"
}

# BLEU, and what multi-bleu.perl, the paper's script, computes: BLEU of the tokens
evaluate() {
    check_system "${1:-}"
    translate "$1" "${2:-test}" "$DATA" checkpoint_best.pt
    score "$NAME" "${2:-test}"
    run_to "$NAME.tokens.bleu" sacrebleu "$TEXT/${2:-test}.$TARGET" --input "$NAME.hypotheses" --tokenize none --metrics bleu
    [[ -n "$DRY_RUN" ]] || cat "$NAME.tokens.bleu"
}
