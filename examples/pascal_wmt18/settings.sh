# Every setting can be overridden from the environment, and so can those of ../wmt.sh and ../common.sh. Numbers are those of Bugliarello & Okazaki (2020) for WMT18 English-Turkish.
: "${OUT:=outputs/pascal_wmt18}"    # everything is written below
: "${SOURCE:=en}" "${TARGET:=tr}"
: "${VALID_SET:=wmt16}" "${TEST_SET:=wmt17}"
: "${MERGES:=16000}"                # joint BPE merges
: "${DROPOUT:=0.3}" "${BETA2:=0.98 transformer=0.997 tag=0.997 multitask=0.997}" "${MAX_UPDATE:=20000}"
: "${PASCAL_HEADS:=7 0 0 0 0 0}" "${PARENT_IGNORING:=0.3}"
source "$(dirname "${BASH_SOURCE[0]}")/../wmt.sh"

# SETIMES2
text() {
    prepare_text https://object.pouta.csc.fi/OPUS-SETIMES/v2/moses/en-tr.txt.zip -- "$OUT/archives/SETIMES.en-tr"
}
