package dashboard

import (
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"linkstream/api/links"
	"linkstream/schema"
)

// editPage is the data of the page that edits a link.
type editPage struct {
	Link    linkView
	Fields  linkFields
	Version string // the links.Revision that the fields are an edit of
	Alias   string // that was typed; "": the link's
}

// fieldVersion is the hidden field with the links.Revision of the link that a form has shown.
const fieldVersion = "version"

// fieldsOf returns the fields of a link as the form shows them in a time zone.
func fieldsOf(link schema.Link, zone *time.Location) linkFields {
	return linkFields{LongURL: link.URL, Title: link.Title, Tags: strings.Join(link.Tags, " "),
		ExpiresAt:  formatExpiry(link.ExpiresAt, zone),
		ExpiredURL: link.ExpiredURL, ForwardQuery: link.ForwardQuery, Campaign: campaignOf(link.URL),
		Behaviour: behaviourOf(link.Behaviour, zone)}
}

func (d *Dashboard) showEdit(c *call, link linkView) error {
	page := editPage{Link: link, Fields: fieldsOf(link.Link, c.zone()), Version: links.Revision(link.Link)}
	if c.http.QueryArgs().Has(links.FieldLongURL) { // typed before the session expired
		page.Fields, page.Version = typedFields(c.query), cut(c.query(fieldVersion), maxAsked)
	}
	return d.render(c, "edit", page)
}

func (d *Dashboard) editLink(c *call) error {
	link, err := d.ownLink(c)
	if schema.ErrorCode(err) == schema.CodeNotFound {
		return d.deletedMeanwhile(c)
	}
	if err != nil {
		return err
	}
	if c.form(fieldRow) != "" {
		version := cut(c.form(fieldVersion), maxAsked)
		return d.render(c, "edit", editPage{Link: link, Fields: typedFields(c.form), Version: version})
	}
	if c.form(fieldVersion) != links.Revision(link.Link) {
		return d.editedMeanwhile(c, link)
	}
	edit := editOf(c, link.Link)
	edit.Unchanged = true
	_, err = d.Shortener.Edit(c.ctx, link.Link, edit)
	if p, invalid := linkProblems(err); invalid {
		page := editPage{Link: link, Fields: typedFields(c.form), Version: links.Revision(link.Link)}
		return d.invalid(c, "edit", page, asPeopleSay(p, page.Fields.Behaviour))
	}
	if schema.ErrorCode(err) == schema.CodeConflict { // since it was read above
		if link, err = d.ownLink(c); err == nil {
			return d.editedMeanwhile(c, link)
		}
	}
	if err != nil {
		return err
	}
	return c.seeOther(link.Path, link.Name+" was saved.")
}

// editedMeanwhile answers a form that would overwrite a later edit. It keeps the typed text and shows the link's
// present value next to each field that differs. If the form is saved again, it replaces these values.
func (d *Dashboard) editedMeanwhile(c *call, link linkView) error {
	typed, now := typedFields(c.form), fieldsOf(link.Link, c.zone())
	p := problems{"": "This link was changed after you opened the form, perhaps in another tab. Nothing was saved yet. " +
		"Your text is below. Save again to replace what the link has now."}
	differs := func(field, typed, now string) {
		switch {
		case typed == now:
		case now == "":
			p[field] = "Now: empty."
		default:
			p[field] = "Now: " + now
		}
	}
	yesNo := map[bool]string{true: "yes", false: "no"}
	differs(links.FieldLongURL, withScheme(typed.LongURL), now.LongURL) // the campaign is beside it
	differs(links.FieldTitle, typed.Title, now.Title)
	differs(links.FieldTags, strings.Join(parseTags(typed.Tags), " "), now.Tags)
	differs(links.FieldExpiresAt, typed.ExpiresAt, now.ExpiresAt)
	differs(links.FieldExpiredURL, withScheme(typed.ExpiredURL), now.ExpiredURL)
	differs(links.FieldForwardQuery, yesNo[typed.ForwardQuery], yesNo[now.ForwardQuery])
	other := typed.Behaviour.extension(link.Behaviour, c.zone())
	other.Password = "" // which nobody sees
	if other != now.Behaviour.extension(link.Behaviour, c.zone()) {
		p["behaviour"] = "The link has other rules, variants or another card now."
	}
	return d.invalid(c, "edit", editPage{Link: link, Fields: typed, Version: links.Revision(link.Link)}, p)
}

// deletedMeanwhile answers the edit of a link that does not exist any more with the form of a new link, which has the
// typed text.
func (d *Dashboard) deletedMeanwhile(c *call) error {
	form, err := d.shortenForm(c)
	if err != nil {
		return err
	}
	form.linkFields, form.DomainID = typedFields(c.form), c.pathID("domain")
	if hash := c.pathValue("hash"); aliasOf(hash) == hash && schema.AliasProblem(hash, form.DomainID == 0) == "" {
		form.Alias = hash
	}
	return d.write(c, fasthttp.StatusNotFound, "new", newPage{Form: form},
		problems{"": "This link was deleted after you opened the form, perhaps in " +
			"another tab. Nothing was saved. Your text is below: create a new link with it, or restore the old one from the " +
			"trash first."})
}

// editOf returns the edit that a form asks for. An expiry that stays as it is may be in the past.
func editOf(c *call, link schema.Link) links.Edit {
	to, title, tags := longURL(c, link.URL), c.form(links.FieldTitle), parseTags(c.form(links.FieldTags))
	expired, forward := withScheme(c.form(links.FieldExpiredURL)), c.form(links.FieldForwardQuery) == "true"
	edit := links.Edit{LongURL: &to, Title: &title, Tags: &tags, ExpiredURL: &expired, ForwardQuery: &forward,
		Behaviour: typedBehaviour(c.form).extension(link.Behaviour, c.zone())}
	if text := c.form(links.FieldExpiresAt); text != formatExpiry(link.ExpiresAt, c.zone()) {
		at, err := parseExpiry(text, c.zone())
		if edit.ExpiresAt = &at; err != nil {
			edit.Malformed = map[string][]string{links.FieldExpiresAt: {expiryMisspelled}}
		}
	}
	return edit
}

// linkProblems returns the problems of a link's fields.
func linkProblems(err error) (problems, bool) {
	if message := clientMessage(err, schema.CodeUnsafeURL); message != "" {
		return problems{links.FieldLongURL: pageWords.Replace(message)}, true
	}
	return problemsOf(err)
}

func (d *Dashboard) deleteLink(c *call, link linkView) error {
	if err := d.Shortener.Delete(c.ctx, link.Link, false); err != nil {
		return err
	}
	back := c.back(pathLinks)
	c.setNotice(notice{Text: link.Name + " was deleted." + inTrash,
		Undo: &undo{Path: pathTrash + "/restore", Field: "link", Value: link.Key(), Back: back}})
	return c.redirect(back)
}
