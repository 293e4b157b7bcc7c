# Every setting can be overridden from the environment, and so can those of ../wmt.sh and ../common.sh. Numbers are those of Bugliarello & Okazaki (2020) for News Commentary v11.
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
: "${OUT:=outputs/nc11}"            # everything is written below
: "${SOURCE:=en}" "${TARGET:=de}"   # SOURCE=de TARGET=en for the other direction
: "${MERGES:=16000}"                # joint BPE merges
: "${DROPOUT:=0.3}" "${MAX_UPDATE:=20000}"
case "$SOURCE-$TARGET" in
en-de) : "${BETA2:=0.997}" "${PASCAL_HEADS:=2 0 0 0 0 0}" "${PARENT_IGNORING:=0.4}" ;;
de-en) : "${BETA2:=0.997 lisa=0.98 multitask=0.98}" "${PASCAL_HEADS:=8 0 0 0 0 0}" "${PARENT_IGNORING:=0.0}" ;;
*) stop "SOURCE=$SOURCE TARGET=$TARGET: choose en de or de en" ;;
esac
source "$(dirname "${BASH_SOURCE[0]}")/../wmt.sh"

# News Commentary v11
text() {
    prepare_text https://data.statmt.org/wmt16/translation-task/training-parallel-nc-v11.tgz -- \
        "$OUT/archives/training-parallel-nc-v11/news-commentary-v11.de-en"
}
