"""Languages by their codes."""

import pytest

from fairseq_syntax.data.text.languages import Language, language_of, scoring_of

# codes -> code and script, from ISO 639, ISO 15924 and CLDR; the tokenizer of sacrebleu
CODES = {
    "zh zh_CN zho_Hans zho cmn zh-CN": ("zh", "Hans", "zh"),
    "zho_Hant zh_TW": ("zh", "Hant", "zh"),
    "ja jpn ja_XX jpn_Jpan": ("ja", "Jpan", "ja-mecab"),
    "ko kor ko_KR": ("ko", "Kore", "ko-mecab"),
    "en eng_Latn en_XX eng": ("en", "Latn", "13a"),
    "sw swh swa swh_Latn sw_KE": ("sw", "Latn", "13a"),
    "yor_Latn yo": ("yo", "Latn", "13a"),
    "th tha_Thai": ("th", "Thai", "char"),
    "bod_Tibt": ("bo", "Tibt", "char"),
    "am amh": ("am", "Ethi", "13a"),
    "bbj": ("bbj", "Latn", "13a"),
    "english": ("english", "Latn", "13a"),
}


@pytest.mark.parametrize("codes", CODES)
def test_codes(codes):
    for code in codes.split():
        language = language_of(code)
        assert (language.code, language.script, language.scoring) == CODES[codes], code
    assert language_of("zho_Hant").stanza == "zh-hant" and language_of("zh_CN").stanza == "zh"


@pytest.mark.parametrize(
    ("text", "scoring"),
    [
        ("这是一个很好的例子。它没有空格。", "zh"),
        ("これはとても良い例です。東京タワー", "ja-mecab"),
        ("นี่เป็นตัวอย่างที่ดีมาก ไม่มีช่องว่าง", "char"),
        ("これ は とても 良い 例 です 。", "none"),
        ("이것은 아주 좋은 예입니다.", "13a"),
        ("This is 很好.", "13a"),
        ("This is fine .", "none"),
        ('A day, a night, "yes."', "13a"),
        ("यह अच्छा है।", "13a"),
        ('He said : " yes . "', "none"),
        ("", "none"),
    ],
)
def test_text_of_an_unknown_language(text, scoring):
    assert scoring_of([text]) == scoring


def test_letters():
    """The mark of long vowels is of several scripts."""
    assert Language("ja", "Jpan").letters("東京タワー is!") == pytest.approx(4 / 7)
    assert language_of("en").letters("123") == 0
