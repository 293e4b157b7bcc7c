# Every setting can be overridden from the environment, and so can those of ../wmt.sh and ../common.sh. Numbers are those of Bugliarello & Okazaki (2020) for WAT English-Japanese.
: "${OUT:=outputs/pascal_wat}"      # everything is written below
: "${SOURCE:=en}" "${TARGET:=ja}"
: "${VALID_SET:=dev}" "${TEST_SET:=test}" # as the corpus calls them
: "${MERGES:=32000}"                # joint BPE merges
: "${MAX_WORDS:=1000}" "${MAX_RATIO:=1000}" # the authors drop no pair; fairseq takes 1024 tokens
: "${TOKENIZE_ja:=mecab -Owakati}"  # the words of CaboCha, which the authors took
: "${SEGMENT_JA:=kytea -notags}"    # for scores: the words of the evaluation at WAT
: "${LR:=7e-4 transformer=1e-3 lisa=1e-3 tag=1e-3}"
: "${DROPOUT:=0.1}" "${BETA2:=0.997 multitask=0.98}" "${MAX_UPDATE:=100000}"
: "${PASCAL_HEADS:=7 0 0 0 0 0}" "${PARENT_IGNORING:=0.0}"
: "${SHARDS:=8}"                    # 3 million sentences to parse
source "$(dirname "${BASH_SOURCE[0]}")/../wmt.sh"

# ASPEC, all three parts: CORPUS is the corpus as it is distributed, with train/train-1.txt to -3.txt, dev/dev.txt and
# test/test.txt. It has fields between " ||| ", of which the last is English and the one before Japanese.
text() {
    local split language field
    local -a files
    there "${CORPUS:-}/train/train-1.txt" \
        "give the folder of the corpus, CORPUS=…; its owners give it out: https://jipsti.jst.go.jp/aspec/"
    run mkdir -p "$TEXT"
    for split in all "${SPLITS[@]}"; do
        case "$split" in
        all) files=("${CORPUS:-CORPUS}"/train/train-{1,2,3}.txt) ;;
        *) files=("${CORPUS:-CORPUS}/$(newstest "$split")/$(newstest "$split").txt") ;;
        esac
        for language in "$SOURCE" "$TARGET"; do
            [[ "$language" == en ]] && field=NF || field="(NF - 1)"
            unless_there "$TEXT/$split.raw.$language" \
                run_to "$TEXT/$split.raw.$language" awk -F ' [|][|][|] ' "{ print \$$field }" "${files[@]}"
        done
    done
    tokenise_text
}

# BLEU of the words of KyTea, as at WAT, instead of detokenised text and a test set of sacreBLEU: score NAME SPLIT
score() {
    local -a segment
    read -ra segment <<< "$SEGMENT_JA"
    hypotheses "$1.generated" "$1.hypotheses"
    run_filter "$1.hypotheses" "$1.$TARGET" tr -d ' '
    run_filter "$1.$TARGET" "$1.words" "${segment[@]}"
    run_filter "$TEXT/$2.raw.$TARGET" "$OUT/$2.words" "${segment[@]}"
    run_to "$1.bleu" sacrebleu "$OUT/$2.words" --input "$1.words" --tokenize none --metrics bleu
    [[ -n "$DRY_RUN" ]] || cat "$1.bleu"
}
