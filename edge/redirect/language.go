package redirect

import (
	"embed"
	"encoding/json"
	"fmt"

	"golang.org/x/text/language"
)

// languages are the languages of the pages for visitors, each with a file of texts. The first one is for all other
// visitors.
var languages = []language.Tag{language.English, language.German, language.French, language.Spanish,
	language.Portuguese, language.Italian,
	language.Dutch, language.Polish, language.Japanese, language.Chinese}

//go:embed languages
var languageFiles embed.FS

// texts are the texts of the pages for visitors in one language.
type texts struct {
	Front       message `json:"front"`
	NotFound    message `json:"not_found"`
	Gone        message `json:"gone"`
	TakenDown   message `json:"taken_down"`
	Unsafe      message `json:"unsafe"`
	Deleted     message `json:"deleted"`
	Expired     message `json:"expired"`
	TooMany     message `json:"too_many"`
	Failed      message `json:"failed"`
	Unavailable message `json:"unavailable"`
	Preview     message `json:"preview"`
	Created     string  `json:"created"` // before a date

	Password passwordTexts `json:"password"`
}

// passwordTexts are the texts of the pages that ask for a link's password.
type passwordTexts struct {
	message
	Label  string `json:"label"`
	Button string `json:"button"`
	Wrong  string `json:"wrong"`
	Wait   string `json:"wait"`
}

type message struct {
	Title string `json:"title"`
	Text  string `json:"text"`
}

func readTexts(tag language.Tag) (t texts) {
	text, err := languageFiles.ReadFile("languages/" + tag.String() + ".json")
	if err == nil {
		err = json.Unmarshal(text, &t)
	}
	if err != nil {
		panic(fmt.Sprintf("read texts in %s: %v", tag, err)) // the files are constants
	}
	return t
}

// maxAcceptLanguage bounds the field that is parsed. Browsers send less than half of it.
const maxAcceptLanguage = 256

// matchLanguage returns the index of the visitor's first language that is among languages, and 0, English, without a
// match.
func matchLanguage(matcher language.Matcher, accepted []byte) (index int) {
	if len(accepted) == 0 || len(accepted) > maxAcceptLanguage {
		return 0
	}
	_, index = language.MatchStrings(matcher, string(accepted))
	return index
}
