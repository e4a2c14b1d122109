package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Limits of a Behaviour.
const (
	MaxRules              = 10
	MinVariants           = 2
	MaxVariants           = 8
	MaxQueryConditions    = 5         // of one rule
	MaxCardTitleLen       = 200       // characters
	MaxCardDescriptionLen = 300       // characters
	MaxBehaviourLen       = 16 << 10  // of Len
	MaxRouteLen           = MaxTagLen // of the name of a rule or variant, which is made like a tag
	shares                = 100
	firstShare            = 'a'
)

// Behaviour has the parts of a link that decide at each visit: password, limit, rules, variants, card and paths. Most
// links have none of them. A visitor is sent to the URL of the first rule that matches, else to a variant, else to the
// link's URL. The API and the stores use the same JSON form.
type Behaviour struct {
	Rules    []Rule    `json:"rules,omitempty"`
	Variants []Variant `json:"variants,omitempty"`
	// Shares says which variant each of the 100 classes of visitors gets: a letter for each class, 'a' for the first
	// variant.
	Shares string `json:"shares,omitempty"`
	Card   *Card  `json:"card,omitempty"`
	// Password is the version of the password that visitors are asked for, which nobody can guess; 0: they are asked for
	// none.
	Password int64 `json:"password,omitempty"`
	// MaxClicks is how many visitors are redirected; 0: any number. Stores read it by its name in JSON.
	MaxClicks int64 `json:"max_clicks,omitempty"`
	// PathMode is the mode of a link that does not leave it to its domain.
	PathMode PathMode `json:"path_mode,omitempty"`
	// Pattern says that PathPattern stands for the path, if the link's URL has one. In URLs that release 1.0 has saved it
	// is literal.
	Pattern bool `json:"pattern,omitempty"`
}

// Rule sends the visitors who meet all its conditions to a URL.
type Rule struct {
	Name string     `json:"name"` // unique among the rules and variants of the link
	If   Conditions `json:"if"`
	URL  string     `json:"url"`
}

// Conditions are the conditions of a rule on a visitor. One element of each list has to match. An empty condition
// always matches.
type Conditions struct {
	Device   []string          `json:"device,omitempty"`   // of type Device
	OS       []string          `json:"os,omitempty"`       // as in reports
	Browser  []string          `json:"browser,omitempty"`  // as in reports
	Language []string          `json:"language,omitempty"` // language ranges (RFC 4647)
	Country  []string          `json:"country,omitempty"`  // ISO 3166-1 alpha-2, upper case
	Query    map[string]string `json:"query,omitempty"`    // parameters and their values; "*": any value
	From     Moment            `json:"from,omitzero"`      // the first moment
	Until    Moment            `json:"until,omitzero"`     // the moment after the last
}

// Variant gets a share of the visitors whom no rule matches.
type Variant struct {
	Name   string `json:"name"`
	URL    string `json:"url"`
	Weight int    `json:"weight"` // percent
}

// Card has the title, text and image of the link's previews.
type Card struct {
	Title       string  `json:"title"`
	Description string  `json:"description"`
	Image       *string `json:"image"` // a URL
}

// Moment is a time in Unix seconds. Its JSON form is ISO 8601 with a numeric offset.
type Moment int64

const momentLayout = "2006-01-02T15:04:05-07:00"

// MarshalJSON implements json.Marshaler.
func (m Moment) MarshalJSON() ([]byte, error) {
	return time.Unix(int64(m), 0).UTC().AppendFormat(nil, `"`+momentLayout+`"`), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *Moment) UnmarshalJSON(text []byte) error {
	at, err := time.Parse(`"`+time.RFC3339+`"`, string(text))
	*m = Moment(at.Unix())
	return err
}

// IsZero reports whether the link has no behaviour.
func (e *Behaviour) IsZero() bool {
	return e == nil || len(e.Rules) == 0 && len(e.Variants) == 0 && e.Card == nil && e.Password == 0 &&
		e.MaxClicks == 0 && e.PathMode == PathDefault && !e.Pattern
}

// Paths returns the mode of a link with this behaviour, which may be nil, and a long URL, and whether the URL has a
// pattern. Such a link needs no PathMode.
func (e *Behaviour) Paths(longURL string) (mode PathMode, pattern bool) {
	switch {
	case e == nil:
		return PathDefault, false
	case e.Pattern && HasPathPattern(longURL):
		return PathAppend, true
	}
	return e.PathMode, false
}

// Len returns the bytes that the behaviour takes, in a form whose URLs have nothing but ASCII characters. It is an
// upper bound for the form in which an edge keeps the behaviour.
func (e *Behaviour) Len() int {
	text := e.Text()
	length := len(text)
	for i := range len(text) {
		if text[i] >= 0x80 {
			length += 2 // as %XX
		}
	}
	return length
}

// Share gives the variants their shares of the visitors. A visitor keeps the variant that they have by old, which may
// be nil, unless the variant is gone or its share has become smaller.
func (e *Behaviour) Share(old *Behaviour) {
	if len(e.Variants) == 0 {
		e.Shares = ""
		return
	}
	left := make([]int, len(e.Variants))
	for i, v := range e.Variants {
		left[i] = v.Weight
	}
	classes := bytes.Repeat([]byte{0}, shares)
	if old != nil && len(old.Shares) == shares {
		for class := range classes {
			name := old.Variants[old.Shares[class]-firstShare].Name
			i := slices.IndexFunc(e.Variants, func(v Variant) bool { return v.Name == name })
			if i >= 0 && left[i] > 0 {
				left[i]--
				classes[class] = firstShare + byte(i)
			}
		}
	}
	next := 0
	for class := range classes {
		if classes[class] != 0 {
			continue
		}
		for left[next] == 0 {
			next++
		}
		left[next]--
		classes[class] = firstShare + byte(next)
	}
	e.Shares = string(classes)
}

// Check returns an error unless the weights sum up to 100 and Shares gives each variant its share.
func (e *Behaviour) Check() error {
	if len(e.Variants) == 0 && e.Shares == "" {
		return nil
	}
	if len(e.Shares) != shares || len(e.Variants) > MaxVariants {
		return errors.New("an extension without a share for each class of visitors")
	}
	for i, v := range e.Variants {
		if n := bytes.Count([]byte(e.Shares), []byte{firstShare + byte(i)}); n != v.Weight {
			return fmt.Errorf("variant %q has %d percent of the visitors, want %d", v.Name, n, v.Weight)
		}
	}
	return nil
}

// Text returns the behaviour as stores keep it, "" for none.
func (e *Behaviour) Text() string {
	if e.IsZero() {
		return ""
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(e) // strings and numbers can be encoded, and the buffer takes everything
	return string(bytes.TrimSpace(text.Bytes()))
}

// BehaviourColumn reads a behaviour from a column of text of a database.
type BehaviourColumn struct{ Of **Behaviour }

// Scan implements sql.Scanner. It fails for a behaviour of another release: an unknown condition must not be skipped.
func (c BehaviourColumn) Scan(column any) error {
	text, ok := column.(string)
	if !ok {
		return fmt.Errorf("scan %T as an extension", column)
	}
	if *c.Of = nil; text == "" {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields()
	e := new(Behaviour)
	if err := decoder.Decode(e); err != nil {
		return fmt.Errorf("scan extension: %w", err)
	}
	*c.Of = e
	return e.Check()
}
