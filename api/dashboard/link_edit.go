package dashboard

import (
	"net/url"
	"slices"
	"strings"

	"linkstream/api/links"
)

// linkFields are the fields of a link as text, in the form that creates it and in the one that edits it.
type linkFields struct {
	LongURL, Title, Tags  string
	ExpiresAt, ExpiredURL string
	ForwardQuery          bool
	Campaign              []campaignField
	Behaviour             behaviour
}

// campaignField is a field whose text becomes a parameter of the long URL.
type campaignField struct{ Name, Label, Example, Text string }

// campaignFields are the parameters that web analytics read (UTM).
var campaignFields = []campaignField{
	{"utm_source", "Source", "newsletter", ""}, {"utm_medium", "Medium", "email", ""},
	{"utm_campaign", "Campaign", "spring-sale", ""},
	{"utm_term", "Term", "running shoes", ""}, {"utm_content", "Content", "header-link", ""},
}

// keptFields are the fields whose text outlasts the session.
var keptFields = append([]string{links.FieldLongURL, links.FieldCustomAlias, links.FieldDomainID,
	links.FieldTitle, links.FieldTags, links.FieldExpiresAt, links.FieldExpiredURL, links.FieldForwardQuery,
	"utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content", fieldVersion}, behaviourFields...)

// typedFields reads the fields with get.
func typedFields(get func(field string) string) linkFields {
	short := func(field string) string { return cut(get(field), maxAsked) }
	fields := linkFields{LongURL: short(links.FieldLongURL), Title: short(links.FieldTitle),
		Tags:      short(links.FieldTags),
		ExpiresAt: short(links.FieldExpiresAt), ExpiredURL: short(links.FieldExpiredURL),
		ForwardQuery: get(links.FieldForwardQuery) == "true", Behaviour: typedBehaviour(get)}
	for _, field := range campaignFields {
		field.Text = short(field.Name)
		fields.Campaign = append(fields.Campaign, field)
	}
	return fields
}

// HasMore reports whether fields that are rarely needed have text.
func (f linkFields) HasMore() bool {
	return f.Title+f.Tags+f.ExpiresAt+f.ExpiredURL != "" || f.ForwardQuery ||
		slices.ContainsFunc(f.Campaign, func(c campaignField) bool { return c.Text != "" }) ||
		!f.Behaviour.IsEmpty()
}

// campaignOf returns the fields with the parameters of a URL.
func campaignOf(longURL string) []campaignField {
	fields := slices.Clone(campaignFields)
	if to, err := url.Parse(longURL); err == nil {
		query := to.Query()
		for i := range fields {
			fields[i].Text = cut(clean([]byte(query.Get(fields[i].Name))), maxAsked)
		}
	}
	return fields
}

// longURL returns the long URL that a form asks for, of a link whose long URL is stored; "" of a new one. A field of
// the campaign that differs from the stored URL counts more than the typed one, and removes its parameter if it is
// empty.
func longURL(c *call, stored string) string {
	parameters := map[string]string{}
	for _, field := range campaignOf(stored) {
		if text := c.form(field.Name); text != field.Text && c.http.PostArgs().Has(field.Name) {
			parameters[field.Name] = text
		}
	}
	return withCampaign(withScheme(c.form(links.FieldLongURL)), parameters)
}

// withCampaign sets parameters of a URL, or removes them if they are empty. All other parameters stay unchanged, in
// their places.
func withCampaign(longURL string, parameters map[string]string) string {
	to, err := url.Parse(longURL)
	if err != nil || len(parameters) == 0 || to.Host == "" {
		return longURL
	}
	rest, fragment, hasFragment := strings.Cut(longURL, "#")
	address, query, _ := strings.Cut(rest, "?")
	var pairs []string
	for pair := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(pair, "=")
		if _, set := parameters[name]; !set && pair != "" {
			pairs = append(pairs, pair)
		}
	}
	for _, field := range campaignFields {
		if text := parameters[field.Name]; text != "" {
			pairs = append(pairs, field.Name+"="+url.QueryEscape(text))
		}
	}
	if len(pairs) > 0 {
		address += "?" + strings.Join(pairs, "&")
	}
	if hasFragment {
		address += "#" + fragment
	}
	return address
}

// LinkFields returns the fields for the templates that both forms share.
func (p editPage) LinkFields() linkFields { return p.Fields.onHost(p.Link.Prefix) }

// onHost returns the fields of a link on a host.
func (f linkFields) onHost(prefix string) linkFields {
	f.Behaviour.Host = strings.TrimSuffix(prefix, "/")
	return f
}

// Wrong reports whether a field whose name begins with one of the prefixes has a problem.
func (v view) Wrong(prefixes ...string) bool {
	for field := range v.Problems {
		if slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(field, prefix) }) {
			return true
		}
	}
	return false
}
