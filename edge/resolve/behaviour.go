package resolve

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"linkstream/schema"
	"linkstream/schema/enrich"
)

// Behaviour is a schema.Behaviour as an entry holds it: a message in protobuf's wire format whose URLs are locations.
// It is empty for other links. If a snapshot has a field of another release, the link is looked up again.
type Behaviour []byte

// The fields of a behaviour, in this order but for those that stand before all others.
const (
	fieldRule protowire.Number = 1 + iota
	fieldShares
	fieldVariant
	fieldCard
	fieldPassword // the version, first
	fieldLimit    // after it
	fieldPattern  // see appendPattern
)

// The fields of a rule and of a variant. Conditions of one kind follow each other.
const (
	fieldName protowire.Number = 1 + iota
	fieldLocation
	ifDevice
	ifOS
	ifBrowser
	ifLanguage
	ifCountry
	ifQuery // a message of parameter and value
	ifFrom
	ifUntil
)

const (
	fieldParameter protowire.Number = 1 + iota
	fieldValue
)

const (
	fieldTitle protowire.Number = 1 + iota
	fieldDescription
	fieldImage
)

// AnyValue is the value of a query condition that every value meets.
const AnyValue = "*"

// classes is the number of classes of visitors, see schema.Behaviour.
const classes = 100

// appendBehaviour appends the behaviour of a link with a location, nothing for nil.
func appendBehaviour(dst []byte, e *schema.Behaviour, location []byte) []byte {
	if e == nil {
		return dst
	}
	if e.Password != 0 {
		dst = protowire.AppendVarint(protowire.AppendTag(dst, fieldPassword, protowire.VarintType), uint64(e.Password))
	}
	if e.MaxClicks != 0 {
		dst = protowire.AppendVarint(protowire.AppendTag(dst, fieldLimit, protowire.VarintType), uint64(e.MaxClicks))
	}
	var part []byte
	for i := range e.Rules {
		part = appendRule(part[:0], &e.Rules[i])
		dst = appendField(dst, fieldRule, part)
	}
	if len(e.Variants) > 0 {
		dst = appendField(dst, fieldShares, []byte(e.Shares))
	}
	for _, v := range e.Variants {
		part = appendField(part[:0], fieldName, []byte(v.Name))
		part = appendField(part, fieldLocation, appendLocation(nil, v.URL))
		dst = appendField(dst, fieldVariant, part)
	}
	if e.Card != nil {
		part = appendField(part[:0], fieldTitle, []byte(e.Card.Title))
		part = appendField(part, fieldDescription, []byte(e.Card.Description))
		if e.Card.Image != nil {
			part = appendField(part, fieldImage, appendLocation(nil, *e.Card.Image))
		}
		dst = appendField(dst, fieldCard, part)
	}
	if e.Pattern {
		dst = appendField(dst, fieldPattern, appendPattern(nil, location))
	}
	return dst
}

func appendRule(dst []byte, r *schema.Rule) []byte {
	dst = appendField(dst, fieldName, []byte(r.Name))
	dst = appendField(dst, fieldLocation, appendLocation(nil, r.URL))
	for _, list := range []struct {
		field  protowire.Number
		values []string
	}{
		{ifDevice, r.If.Device}, {ifOS, r.If.OS}, {ifBrowser, r.If.Browser}, {ifLanguage, r.If.Language},
		{ifCountry, r.If.Country},
	} {
		for _, value := range list.values {
			dst = appendField(dst, list.field, []byte(value))
		}
	}
	for _, parameter := range slices.Sorted(maps.Keys(r.If.Query)) { // in an order, as entries are compared
		part := appendField(nil, fieldParameter, []byte(parameter))
		dst = appendField(dst, ifQuery, appendField(part, fieldValue, []byte(r.If.Query[parameter])))
	}
	if r.If.From != 0 {
		dst = protowire.AppendVarint(protowire.AppendTag(dst, ifFrom, protowire.VarintType), uint64(r.If.From))
	}
	if r.If.Until != 0 {
		dst = protowire.AppendVarint(protowire.AppendTag(dst, ifUntil, protowire.VarintType), uint64(r.If.Until))
	}
	return dst
}

func appendField(dst []byte, field protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(dst, field, protowire.BytesType), value)
}

// field is a field of a message. It borrows the message's bytes.
type field struct {
	number protowire.Number
	bytes  []byte
	value  int64 // of a varint
}

// next returns the first field of a message and the rest. A message that cannot be read has no field, and its number
// is 0.
func next(message []byte) (f field, rest []byte) {
	number, kind, n := protowire.ConsumeTag(message)
	if n < 0 {
		return field{}, nil
	}
	message = message[n:]
	switch kind {
	case protowire.BytesType:
		f.bytes, n = protowire.ConsumeBytes(message)
	case protowire.VarintType:
		var value uint64
		value, n = protowire.ConsumeVarint(message)
		f.value = int64(value)
	default:
		n = -1
	}
	if n < 0 {
		return field{}, nil
	}
	f.number = number
	return f, message[n:]
}

// Visitor is what conditions ask of a visitor.
type Visitor interface {
	Agent() enrich.Agent
	Country() string // "" if it is unknown
	Language() []byte
	Has(parameter, value []byte) bool // in the query; AnyValue stands for any value
	Unix() int64                      // the time of the visit
	Hash() uint64                     // the same for each visit of the same visitor
}

// Route returns where a visitor is sent and the name of the rule or variant that says so, or nothing if neither does.
func (x Behaviour) Route(v Visitor) (location, name []byte) {
	variant := -1
	for rest := []byte(x); len(rest) > 0; {
		var f field
		switch f, rest = next(rest); f.number {
		case fieldRule:
			if location, name, matches := match(f.bytes, v); matches {
				return location, name
			}
		case fieldShares:
			variant = int(f.bytes[v.Hash()%classes] - 'a')
		case fieldVariant:
			if variant == 0 {
				return cutRoute(f.bytes)
			}
			variant--
		}
	}
	return nil, nil
}

// cutRoute returns location and name of a rule or variant.
func cutRoute(route []byte) (location, name []byte) {
	n, rest := next(route)
	l, _ := next(rest)
	return l.bytes, n.bytes
}

// match reports whether a visitor meets the conditions of a rule: of each kind one, but all of the query.
func match(rule []byte, v Visitor) (location, name []byte, matches bool) {
	var asked, met uint
	for rest := rule; len(rest) > 0; {
		var f field
		f, rest = next(rest)
		kind, ok := uint(1)<<f.number, false
		switch f.number {
		case fieldName:
			name = f.bytes
			continue
		case fieldLocation:
			location = f.bytes
			continue
		case ifDevice:
			ok = string(f.bytes) == v.Agent().Device
		case ifOS:
			ok = string(f.bytes) == v.Agent().OS
		case ifBrowser:
			ok = string(f.bytes) == v.Agent().Browser
		case ifLanguage:
			ok = enrich.LanguageMatches(v.Language(), f.bytes)
		case ifCountry:
			ok = string(f.bytes) == v.Country()
		case ifQuery:
			parameter, rest := next(f.bytes)
			value, _ := next(rest)
			if ok = v.Has(parameter.bytes, value.bytes); !ok {
				return nil, nil, false
			}
		case ifFrom:
			ok = v.Unix() >= f.value
		case ifUntil:
			ok = v.Unix() < f.value
		}
		asked |= kind
		if ok {
			met |= kind
		}
	}
	return location, name, asked == met
}

// Password returns the version of the password that visitors are asked for, 0 if they are asked for none.
func (x Behaviour) Password() int64 {
	if first, _ := next(x); first.number == fieldPassword {
		return first.value
	}
	return 0
}

// Limit returns how many visitors the link redirects, 0 if any number.
func (x Behaviour) Limit() int64 {
	first, rest := next(x)
	if first.number == fieldPassword {
		first, _ = next(rest)
	}
	if first.number == fieldLimit {
		return first.value
	}
	return 0
}

// Card is what previews of a link show.
type Card struct{ Title, Description, Image string }

// HasCard reports whether the link has a card.
func (x Behaviour) HasCard() bool { return x.card() != nil }

// Card returns the card of a link that has one.
func (x Behaviour) Card() (card Card) {
	for part := x.card(); len(part) > 0; {
		var f field
		switch f, part = next(part); f.number {
		case fieldTitle:
			card.Title = string(f.bytes)
		case fieldDescription:
			card.Description = string(f.bytes)
		case fieldImage:
			card.Image = string(f.bytes)
		}
	}
	return card
}

// card returns the message of the card, nil if there is none.
func (x Behaviour) card() []byte { return x.find(fieldCard) }

// pattern returns the places of the pattern in the link's own location, nothing if it is none.
func (x Behaviour) pattern() []byte { return x.find(fieldPattern) }

func (x Behaviour) find(number protowire.Number) []byte {
	for rest := []byte(x); len(rest) > 0; {
		var f field
		if f, rest = next(rest); f.number == number {
			return f.bytes
		}
	}
	return nil
}

// locations calls each for where rules and variants lead, until it returns false.
func (x Behaviour) locations(each func(location []byte) bool) {
	for rest := []byte(x); len(rest) > 0; {
		var f field
		if f, rest = next(rest); f.number != fieldRule && f.number != fieldVariant {
			continue
		}
		if location, _ := cutRoute(f.bytes); !each(location) {
			return
		}
	}
}

// valid reports whether appendBehaviour can have returned bytes that come from outside of the process, as far as
// methods rely on it.
func (x Behaviour) valid(location []byte) bool {
	variants, last := 0, byte(0)
	for rest := []byte(x); len(rest) > 0; {
		var f field
		f, rest = next(rest)
		ok := false
		switch f.number {
		case fieldRule:
			ok = validRoute(f.bytes, ifUntil)
		case fieldShares:
			if ok = len(f.bytes) == classes && last == 0; ok {
				for _, letter := range f.bytes {
					last = max(last, letter)
					ok = ok && letter >= 'a'
				}
			}
		case fieldVariant:
			variants++
			ok = validRoute(f.bytes, fieldLocation) && last > 0
		case fieldCard:
			ok = validFields(f.bytes, fieldImage)
		case fieldPassword, fieldLimit:
			ok = f.value > 0
		case fieldPattern:
			ok = validPattern(f.bytes, location)
		}
		if !ok {
			return false
		}
	}
	return variants == 0 && last == 0 || int(last) < 'a'+variants
}

// validRoute reports whether a rule or variant has a name and a location and no field after the last one.
func validRoute(route []byte, last protowire.Number) bool {
	name, rest := next(route)
	location, _ := next(rest)
	return name.number == fieldName && location.number == fieldLocation && len(location.bytes) > 0 &&
		validFields(route, last)
}

// validFields reports whether a message has the fields 1 to last only.
func validFields(message []byte, last protowire.Number) bool {
	for len(message) > 0 {
		var f field
		if f, message = next(message); f.number < 1 || f.number > last {
			return false
		}
	}
	return true
}
