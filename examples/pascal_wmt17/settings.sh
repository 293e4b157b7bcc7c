# Every setting can be overridden from the environment, and so can those of ../wmt.sh and ../common.sh. Numbers are those of Bugliarello & Okazaki (2020) for WMT17 English-German.
: "${OUT:=outputs/pascal_wmt17}"    # everything is written below
: "${SOURCE:=en}" "${TARGET:=de}"
: "${VALID_SET:=wmt16}" "${TEST_SET:=wmt17}"
: "${MERGES:=32000}"                # joint BPE merges
: "${LR:=7e-4 transformer=1e-3 tag=1e-3 multitask=1e-3}"
: "${DROPOUT:=0.1}" "${BETA2:=0.997}" "${MAX_UPDATE:=100000}"
: "${PASCAL_HEADS:=7 0 0 0 0 0}" "${PARENT_IGNORING:=0.3}"
: "${SHARDS:=8}"                    # 5.9 million sentences to parse
source "$(dirname "${BASH_SOURCE[0]}")/../wmt.sh"

text() {
    wmt17_text
}
