package links

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/language"

	"linkstream/api/auth"
	"linkstream/schema"
	"linkstream/schema/enrich"
)

// Behaviour has the values of a request for a link's schema.Behaviour: the JSON texts of its parts, in the form of the
// API. "" leaves a part as it is, null removes it.
type Behaviour struct{ Rules, Variants, Card, Password, MaxClicks, PathMode string }

// parts returns the parts of x.
func (x *Behaviour) parts() []*string {
	return []*string{&x.Rules, &x.Variants, &x.Card, &x.Password, &x.MaxClicks, &x.PathMode}
}

// isZero reports whether the request leaves the behaviour as it is.
func (x Behaviour) isZero() bool { return x == Behaviour{} }

// Limits of a link's password, in characters.
const (
	MinPasswordLen = 4
	MaxPasswordLen = schema.MaxLinkPasswordLen
)

// Limits of the query conditions of a rule, in characters.
const (
	maxQueryName  = 64
	maxQueryValue = 200
)

// extension returns a link's behaviour after a request, and calls eachURL for the URLs that the request brings. longURL
// is the link's new URL, nil if it stays.
func (v *validation) extension(given Behaviour, longURL *string, old *schema.Behaviour,
	eachURL func(field, address string)) *schema.Behaviour {
	e := new(schema.Behaviour)
	if old != nil {
		*e = *old
	}
	if longURL != nil {
		if e.Pattern = schema.HasPathPattern(*longURL); e.Pattern {
			e.PathMode = schema.PathDefault
		}
	}
	if given.PathMode != "" {
		e.PathMode = v.pathMode(given.PathMode, e.Pattern)
	}
	if given.Rules != "" {
		e.Rules = v.rules(given.Rules, eachURL)
	}
	if given.Variants != "" {
		e.Variants = v.variants(given.Variants, eachURL)
	}
	if given.Card != "" {
		e.Card = v.card(given.Card)
	}
	if given.Password != "" {
		e.Password = v.password(given.Password)
	}
	if given.MaxClicks != "" {
		e.MaxClicks = v.maxClicks(given.MaxClicks)
	}
	v.routeNames(given, e)
	if e.Len() > schema.MaxBehaviourLen {
		for field, text := range map[string]string{FieldRules: given.Rules, FieldVariants: given.Variants,
			FieldCard: given.Card} {
			if text != "" {
				v.reject(field, "Rules, variants and card of a link must have at most 16 KiB together.")
			}
		}
	}
	if len(v.invalid) > 0 {
		return nil
	}
	if given.Variants != "" {
		e.Share(old)
	}
	if e.IsZero() {
		return nil
	}
	return e
}

// routeNames rejects names that occur twice.
func (v *validation) routeNames(given Behaviour, e *schema.Behaviour) {
	taken := map[string]bool{}
	check := func(field, name string) {
		if name != "" && taken[name] {
			v.reject(field, "Each rule and variant of a link must have a name of its own.")
		}
		taken[name] = true
	}
	for i, variant := range e.Variants {
		if given.Variants != "" {
			check(fmt.Sprintf("%s.%d.name", FieldVariants, i), variant.Name)
		}
		taken[variant.Name] = true
	}
	for i, rule := range e.Rules {
		field := fmt.Sprintf("%s.%d.name", FieldRules, i)
		if given.Rules == "" {
			field = FieldVariants // whose new names collide with names of the rules
		}
		check(field, rule.Name)
	}
}

// parse decodes a JSON text, which must be there. Otherwise it rejects the field.
func parse[T any](v *validation, field string, text json.RawMessage, problem string) (value T, ok bool) {
	if ok = len(text) > 0 && string(text) != "null" && json.Unmarshal(text, &value) == nil; !ok {
		v.reject(field, problem)
	}
	return value, ok
}

// object is a JSON object by the exact names of its members.
type object = map[string]json.RawMessage

// objects decodes an array of objects, or null.
func (v *validation) objects(field, text string, least, most int) (elements []object) {
	if text == "null" {
		return nil
	}
	problem := fmt.Sprintf("The %s must be an array of %d to %d objects, or null.", field, least, most)
	elements, ok := parse[[]object](v, field, json.RawMessage(text), problem)
	if ok = ok && least <= len(elements) && len(elements) <= most; !ok {
		v.reject(field, problem)
		return nil
	}
	return elements
}

// routeName decodes the name of a rule or variant.
func (v *validation) routeName(field string, text json.RawMessage) string {
	const problem = "The name must have 1 to 32 characters of a-z, 0-9, _ and -."
	name, ok := parse[string](v, field, text, problem)
	if ok && !schema.ValidTag(name) {
		v.reject(field, problem)
	}
	return name
}

// routeURL decodes the URL of a rule or variant.
func (v *validation) routeURL(field string, text json.RawMessage, each func(field, address string)) string {
	address, ok := parse[string](v, field, text, "The URL must be a string.")
	if ok {
		each(field, address)
	}
	return address
}

func (v *validation) rules(text string, eachURL func(field, address string)) (rules []schema.Rule) {
	for i, element := range v.objects(FieldRules, text, 0, schema.MaxRules) {
		field := fmt.Sprintf("%s.%d", FieldRules, i)
		if element == nil {
			v.reject(field, "A rule must be an object.")
			continue
		}
		rules = append(rules, schema.Rule{
			Name: v.routeName(field+".name", element["name"]),
			If:   v.conditions(field+".if", element["if"]),
			URL:  v.routeURL(field+".url", element["url"], eachURL),
		})
	}
	return rules
}

func (v *validation) variants(text string, eachURL func(field, address string)) (variants []schema.Variant) {
	sum := 0
	const weights = "The weights must be integers of 1 to 99 that sum up to 100."
	for i, element := range v.objects(FieldVariants, text, schema.MinVariants, schema.MaxVariants) {
		field := fmt.Sprintf("%s.%d", FieldVariants, i)
		if element == nil {
			v.reject(field, "A variant must be an object.")
			continue
		}
		weight, ok := parse[int](v, field+".weight", element["weight"], weights)
		if ok && (weight < 1 || weight > 99) {
			v.reject(field+".weight", weights)
		}
		sum += weight
		variants = append(variants, schema.Variant{
			Name:   v.routeName(field+".name", element["name"]),
			URL:    v.routeURL(field+".url", element["url"], eachURL),
			Weight: weight,
		})
	}
	if len(variants) > 0 && sum != 100 {
		v.reject(FieldVariants, weights)
	}
	return variants
}

// conditions decodes the conditions of a rule.
func (v *validation) conditions(field string, text json.RawMessage) (c schema.Conditions) {
	const problem = "A rule must have an object with at least one condition."
	given, ok := parse[object](v, field, text, problem)
	if ok && len(given) == 0 {
		v.reject(field, problem)
	}
	for name, value := range given {
		at := field + "." + name
		switch name {
		case "device":
			c.Device = v.choices(at, value, "desktop, mobile and tablet", func(s string) bool {
				return s == schema.Desktop || s == schema.Mobile || s == schema.Tablet
			})
		case "os":
			c.OS = v.choices(at, value, "names of operating systems as in reports", enrich.KnownOS)
		case "browser":
			c.Browser = v.choices(at, value, "names of browsers as in reports", enrich.KnownBrowser)
		case "language":
			c.Language = v.choices(at, value, "languages such as de or de-AT", knownLanguage)
		case "country":
			c.Country = v.choices(at, value, "ISO 3166 codes of countries such as AT", knownCountry)
		case "query":
			c.Query = v.queryConditions(at, value)
		case "from":
			c.From = v.moment(at, value)
		case "until":
			c.Until = v.moment(at, value)
		default:
			v.reject(at, "Conditions are device, os, browser, language, country, query, from and until.")
		}
	}
	if c.From != 0 && c.Until != 0 && c.Until <= c.From {
		v.reject(field+".until", "The end must be after the beginning.")
	}
	return c
}

// choices decodes an array of values that are known.
func (v *validation) choices(field string, text json.RawMessage, of string, known func(string) bool) []string {
	problem := "This must be an array of at least one of: " + of + "."
	values, ok := parse[[]string](v, field, text, problem)
	for _, value := range values {
		ok = ok && known(value)
	}
	if !ok || len(values) == 0 {
		v.reject(field, problem)
	}
	return values
}

// langRange is the form of a language range (RFC 4647, section 2.1), without wildcards.
var langRange = regexp.MustCompile(`^[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*$`)

func knownLanguage(text string) bool {
	return len(text) <= schema.MaxLanguageLen && langRange.MatchString(text) && enrich.KnownLanguage(text)
}

func knownCountry(code string) bool {
	region, err := language.ParseRegion(code)
	return err == nil && region.IsCountry() && region.String() == code
}

func (v *validation) queryConditions(field string, text json.RawMessage) map[string]string {
	const problem = "This must be an object of 1 to 5 names with values, which are strings; * is any value."
	query, ok := parse[map[string]string](v, field, text, problem)
	for name, value := range query {
		ok = ok && name != "" && utf8.RuneCountInString(name) <= maxQueryName &&
			utf8.RuneCountInString(value) <= maxQueryValue
	}
	if !ok || len(query) == 0 || len(query) > schema.MaxQueryConditions {
		v.reject(field, problem)
	}
	return query
}

func (v *validation) moment(field string, text json.RawMessage) schema.Moment {
	const problem = "This must be an ISO 8601 time with an offset, such as 2030-01-31T12:00:00+01:00."
	given, ok := parse[string](v, field, text, problem)
	at, err := schema.ParseTime(given)
	if ok && (err != nil || at.Unix() <= 0 || at.After(maxExpiry)) {
		v.reject(field, problem)
	}
	return schema.Moment(at.Unix())
}

// card decodes a card, or null.
func (v *validation) card(text string) *schema.Card {
	if text == "null" {
		return nil
	}
	given, ok := parse[object](v, FieldCard, json.RawMessage(text), "The card must be an object, or null.")
	if !ok {
		return nil
	}
	card := &schema.Card{Title: v.cardText("title", given["title"], 1, schema.MaxCardTitleLen)}
	if description := given["description"]; len(description) > 0 {
		card.Description = v.cardText("description", description, 0, schema.MaxCardDescriptionLen)
	}
	if image := given["image"]; len(image) > 0 && string(image) != "null" && string(image) != `""` {
		const problem = "The image must be an https URL of at most 2048 characters, or null."
		address, ok := parse[string](v, FieldCard+".image", image, problem)
		if _, wrong := parseTarget(address); ok && (wrong != "" || !strings.HasPrefix(address, "https://")) {
			v.reject(FieldCard+".image", problem)
		}
		card.Image = &address
	}
	return card
}

// password decodes a password, or null, and returns its version. It leaves the password in v.
func (v *validation) password(text string) (version int64) {
	v.newPassword = new("")
	if text == "null" {
		return 0
	}
	password, ok := parse[string](v, FieldPassword, json.RawMessage(text), BadPassword)
	if ok && !ValidPassword(password) {
		v.reject(FieldPassword, BadPassword)
	}
	*v.newPassword = password
	return 1 + rand.Int64N(math.MaxInt64)
}

// BadPassword says which passwords are valid.
var BadPassword = fmt.Sprintf("The password must have %d to %d characters, and no control characters.", MinPasswordLen,
	MaxPasswordLen)

// ValidPassword reports whether visitors may be asked for a password.
func ValidPassword(password string) bool {
	length := utf8.RuneCountInString(auth.PreparePassword(password))
	return length >= MinPasswordLen && length <= MaxPasswordLen && !strings.ContainsFunc(password, unprintable)
}

// pathMode decodes a path mode, or null. The URL of a link with a pattern says all that a mode could say.
func (v *validation) pathMode(text string, pattern bool) schema.PathMode {
	if text == "null" {
		return schema.PathDefault
	}
	const problem = "The path mode must be none, ignore or append, or null."
	mode, ok := parse[schema.PathMode](v, FieldPathMode, json.RawMessage(text), problem)
	switch {
	case ok && (mode == schema.PathDefault || !mode.Valid()):
		v.reject(FieldPathMode, problem)
	case ok && pattern && mode != schema.PathAppend:
		v.reject(FieldPathMode, "The path mode of a long URL with {path} is append.")
	case pattern:
		return schema.PathDefault
	}
	return mode
}

// maxClicks decodes a limit, or null.
func (v *validation) maxClicks(text string) int64 {
	if text == "null" {
		return 0
	}
	const problem = "The limit must be an integer of 1 to 1000000000, or null."
	most, ok := parse[int64](v, FieldMaxClicks, json.RawMessage(text), problem)
	if ok && (most < 1 || most > schema.MaxClickLimit) {
		v.reject(FieldMaxClicks, problem)
	}
	return most
}

func unprintable(r rune) bool { return r == utf8.RuneError || unicode.IsControl(r) }

// cardText decodes a text of a card.
func (v *validation) cardText(name string, text json.RawMessage, least, most int) string {
	field, problem := FieldCard+"."+name, fmt.Sprintf("The %s must have %d to %d characters, and no control characters.",
		name, least, most)
	value, ok := parse[string](v, field, text, problem)
	length := utf8.RuneCountInString(value)
	if ok && (length < least || length > most || strings.ContainsFunc(value, unprintable)) {
		v.reject(field, problem)
	}
	return value
}
