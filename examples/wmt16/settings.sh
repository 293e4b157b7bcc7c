# Every setting can be overridden from the environment, and so can those of ../wmt.sh and ../common.sh. Numbers are those of Bugliarello & Okazaki (2020) for WMT16 English-German.
: "${OUT:=outputs/wmt16}"           # everything is written below
: "${SOURCE:=en}" "${TARGET:=de}"
: "${MERGES:=32000}"                # joint BPE merges
: "${LR:=7e-4 transformer=1e-3 tag=1e-3 multitask=1e-3}"
: "${DROPOUT:=0.1}" "${BETA2:=0.98 transformer=0.997 lisa=0.997 tag=0.997 multitask=0.997}" "${MAX_UPDATE:=100000}"
: "${PASCAL_HEADS:=5 0 0 0 0 0}" "${PARENT_IGNORING:=0.0}"
: "${IDENTIFY=1}"                 # pairs in wrong languages are dropped, as in the paper
: "${SHARDS:=8}"                    # 4.5 million sentences to parse
source "$(dirname "${BASH_SOURCE[0]}")/../wmt.sh"

# Europarl v7, Common Crawl, News Commentary v11
text() {
    prepare_text https://www.statmt.org/europarl/v7/de-en.tgz \
        https://www.statmt.org/wmt13/training-parallel-commoncrawl.tgz \
        https://data.statmt.org/wmt16/translation-task/training-parallel-nc-v11.tgz -- \
        "$OUT/archives/europarl-v7.de-en" "$OUT/archives/commoncrawl.de-en" \
        "$OUT/archives/training-parallel-nc-v11/news-commentary-v11.de-en"
}
