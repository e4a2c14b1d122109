package dashboard

import (
	"slices"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"linkstream/api/links"
	"linkstream/api/request"
	"linkstream/api/webhook"
	"linkstream/schema"
)

const pathNewWebhook = pathWebhooks + "/new"

func (d *Dashboard) routeWebhooks() {
	d.get(pathWebhooks, request.Constant, d.listWebhooks)
	d.get(pathNewWebhook, request.Constant, d.showNewWebhook)
	d.post(pathNewWebhook, request.Constant, d.createWebhook)
	d.keep(pathNewWebhook, webhook.FieldURL, webhook.FieldTag, webhook.FieldHash, fieldScopeOf)
	const path = pathWebhooks + "/{id}"
	d.get(path, request.Constant, d.ofWebhook(d.showWebhook))
	d.post(path, request.Constant, d.ofWebhook(d.editWebhook))
	d.post(path+"/active", request.Constant, d.ofWebhook(d.switchWebhook))
	d.post(path+"/test", request.Constant, d.ofWebhook(d.testWebhook))
	d.post(path+"/rotate", request.Constant, d.ofWebhook(d.rotateSecret))
	d.post(path+"/delete", request.Constant, d.ofWebhook(d.deleteWebhook))
	d.routeDeliveries(path)
}

// fieldScopeOf is the field of a form that says which links a webhook is for: one of these, or "" for all.
const (
	fieldScopeOf = "of"
	ofOneTag     = "tag"
	ofOneLink    = "link"
)

// webhookItem is a webhook as shown to its owner.
type webhookItem struct {
	schema.Webhook
	Scope string // the links whose events it gets, in words
	Link  string // the short URL of its link, without the scheme; "": it is not for one link
	Path  string
}

func (d *Dashboard) webhookItem(c *call, hook schema.Webhook) (webhookItem, error) {
	item := webhookItem{Webhook: hook, Scope: "All links", Path: pathWebhooks + "/" + strconv.FormatInt(hook.ID, 10)}
	if hook.Tag != "" {
		item.Scope = "Links with the tag “" + hook.Tag + "”"
	}
	if hook.Hash == "" {
		return item, nil
	}
	link := schema.Link{Hash: hook.Hash, DomainID: hook.DomainID}
	if hook.DomainID != 0 {
		domains, err := d.DB.Domains(c.ctx, c.account.ID)
		if err != nil {
			return item, err
		}
		for _, domain := range domains {
			if domain.ID == hook.DomainID {
				link.Host = domain.Host
			}
		}
	}
	item.Link = d.linkView(link).Name
	item.Scope = item.Link
	return item, nil
}

// State says whether the webhook is on, and why it is off if the service has switched it off.
func (h webhookItem) State() linkState {
	switch {
	case h.OffReason == schema.OffFailing:
		return linkState{"switched off after three days of failures", "bad"}
	case h.OffReason == schema.OffGone:
		return linkState{"receiver gone (410)", "bad"}
	case h.OffReason == schema.OffToken:
		return linkState{"off: its token has ended", "bad"}
	case !h.Active:
		return linkState{"off", ""}
	case !h.FailingSince.IsZero():
		return linkState{"failing", "warn"}
	}
	return linkState{"on", "good"}
}

// KiB returns how much data waits.
func (h webhookItem) KiB() int64 { return (h.Waiting + 1023) >> 10 }

// webhooksPage is the data of the list of webhooks.
type webhooksPage struct {
	Hooks []webhookItem
	Full  bool
	Most  int
}

func (d *Dashboard) listWebhooks(c *call) error {
	hooks, err := d.DB.Webhooks(c.ctx, c.account.ID)
	if err != nil {
		return err
	}
	page := webhooksPage{Full: len(hooks) >= schema.MaxWebhooks, Most: schema.MaxWebhooks}
	for _, hook := range hooks {
		item, err := d.webhookItem(c, hook)
		if err != nil {
			return err
		}
		page.Hooks = append(page.Hooks, item)
	}
	return d.render(c, "webhooks", page)
}

// webhookForm has the fields of a webhook as a form shows them.
type webhookForm struct {
	Action     string // path
	URL        string
	Of         string // see fieldScopeOf
	Tag, Link  string
	PeopleOnly bool
	Events     []eventOption
	Newest     int64 // ID of the newest webhook: it reveals a form that is sent twice
}

// eventOption is an event that a webhook may subscribe to.
type eventOption struct {
	Name, Carries string
	Chosen        bool
}

// carries says what the deliveries of an event have.
var carries = map[string]string{
	schema.EventLinkClicked:   "clicks, up to 500 in one delivery: time, device, country, referrer, rule",
	schema.EventLinkCreated:   "a new or restored link with all its fields",
	schema.EventLinkUpdated:   "a changed link with all its fields",
	schema.EventLinkDeleted:   "a link as it was before it was deleted",
	schema.EventDomainChanged: "a domain that was added, verified, lost, changed or removed",
}

func eventOptions(chosen []string) (all []eventOption) {
	for _, event := range webhook.Events() {
		all = append(all, eventOption{event, carries[event], slices.Contains(chosen, event)})
	}
	return all
}

// formOf returns the form that changes a webhook.
func (h webhookItem) formOf() webhookForm {
	form := webhookForm{Action: h.Path, URL: h.URL, Tag: h.Tag, Link: h.Link, PeopleOnly: h.PeopleOnly,
		Events: eventOptions(h.Events)}
	switch {
	case h.Hash != "":
		form.Of = ofOneLink
	case h.Tag != "":
		form.Of = ofOneTag
	}
	return form
}

// apply sets hook to what the form asks for, and returns the form as typed and its problems. What is as it was shown is
// not checked again: the link of a webhook may be in the trash.
func (d *Dashboard) apply(c *call, hook *schema.Webhook, shown webhookForm) (webhookForm, problems, error) {
	events, people := c.values(webhook.FieldEvents), c.form(webhook.FieldPeopleOnly) != ""
	form, edit := shown, webhook.Edit{Events: &events, PeopleOnly: &people}
	form.URL, form.Of = cut(withScheme(c.form(webhook.FieldURL)), maxAsked), c.form(fieldScopeOf)
	form.Tag, form.Link = cut(c.form(webhook.FieldTag), maxAsked), cut(c.form(webhook.FieldHash), maxAsked)
	form.PeopleOnly, form.Events = people, eventOptions(events)
	if hook.ID == 0 || form.URL != shown.URL {
		edit.URL = &form.URL
	}
	edit.AnyLink, edit.AnyTag = form.Of != ofOneLink, form.Of != ofOneTag
	switch {
	case form.Of == ofOneTag:
		edit.Tag = new(schema.Fold(form.Tag))
	case form.Of == ofOneLink && (shown.Of != ofOneLink || form.Link != shown.Link):
		edit.Hash = new(schema.Fold(form.Link))
		filter, err := d.Shortener.Filter(c.ctx, links.ListRequest{AccountID: c.account.ID, Query: form.Link})
		if err != nil && schema.ErrorCode(err) != schema.CodeInvalid {
			return form, nil, err
		}
		if len(filter.Words) == 1 && filter.Words[0].Key != nil { // it is a short URL
			edit.Hash, edit.DomainID = &filter.Words[0].Key.Hash, &filter.Words[0].Key.DomainID
		}
	}
	wrong, err := d.Webhooks.Apply(c.ctx, d.Shortener, hook, edit)
	p, _ := problemsOf(links.InvalidFields(wrong))
	hook.TokenID, hook.UpdatedAt = 0, time.Now().UTC() // it does not end with a token any more
	return form, p, err
}

func (d *Dashboard) newWebhookForm(c *call) (form webhookForm, err error) {
	form = webhookForm{Action: pathNewWebhook, URL: c.typed(webhook.FieldURL), Tag: c.typed(webhook.FieldTag),
		Link: c.typed(webhook.FieldHash), Of: c.typed(fieldScopeOf), PeopleOnly: true,
		Events: eventOptions([]string{schema.EventLinkClicked})}
	hooks, err := d.DB.Webhooks(c.ctx, c.account.ID)
	for _, hook := range hooks {
		form.Newest = max(form.Newest, hook.ID)
	}
	return form, err
}

func (d *Dashboard) showNewWebhook(c *call) error {
	form, err := d.newWebhookForm(c)
	if err != nil {
		return err
	}
	return d.render(c, "webhook_new", form)
}

// secretPage is the data of the only page that ever shows a secret.
type secretPage struct {
	webhookItem
	Rotated bool
}

// createWebhook answers with the secret. Reloading that page sends the form again; its field "newest" then names an
// older webhook, so no second one is created.
func (d *Dashboard) createWebhook(c *call) error {
	blank, err := d.newWebhookForm(c)
	if err != nil {
		return err
	}
	now := time.Now().UTC()
	hook := schema.Webhook{AccountID: c.account.ID, Active: true, Secret: webhook.NewSecret(), CreatedAt: now}
	form, p, err := d.apply(c, &hook, blank)
	if err != nil {
		return err
	}
	if len(p) == 0 && blank.Newest > c.formID("newest") {
		p = problems{"": "Another webhook was created since this form was loaded, maybe by sending it twice: see the list. " +
			"Send the form again to create one more."}
	}
	if len(p) > 0 {
		return d.invalid(c, "webhook_new", form, p)
	}
	err = d.DB.CreateWebhook(c.ctx, &hook)
	if schema.ErrorCode(err) == schema.CodeConflict {
		return d.write(c, fasthttp.StatusConflict, "webhook_new", form, problems{"": webhook.TooMany})
	}
	if err != nil {
		return err
	}
	return d.showSecret(c, hook, false)
}

func (d *Dashboard) showSecret(c *call, hook schema.Webhook, rotated bool) error {
	item, err := d.webhookItem(c, hook)
	if err != nil {
		return err
	}
	return d.render(c, "webhook_secret", secretPage{item, rotated})
}

// ofWebhook lets handle answer for the account's webhook that the path names.
func (d *Dashboard) ofWebhook(handle func(*call, webhookItem) error) func(*call) error {
	return func(c *call) error {
		hook, err := d.DB.Webhook(c.ctx, c.account.ID, c.pathID("id"))
		if err != nil {
			return err
		}
		item, err := d.webhookItem(c, hook)
		if err != nil {
			return err
		}
		return handle(c, item)
	}
}

func (d *Dashboard) editWebhook(c *call, item webhookItem) error {
	hook := item.Webhook
	form, p, err := d.apply(c, &hook, item.formOf())
	if err != nil {
		return err
	}
	if len(p) > 0 {
		return d.refuseWebhook(c, item, form, p)
	}
	if err := d.DB.UpdateWebhook(c.ctx, &hook); err != nil {
		return err
	}
	return c.seeOther(item.Path, "The webhook was saved.")
}

// refuseWebhook shows the webhook's page with the reason why a form was refused.
func (d *Dashboard) refuseWebhook(c *call, item webhookItem, form webhookForm, p problems) error {
	page, err := d.webhookPage(c, item)
	if err != nil {
		return err
	}
	page.Form = form
	return d.invalid(c, "webhook", page, p)
}

func (d *Dashboard) switchWebhook(c *call, item webhookItem) error {
	hook := item.Webhook
	hook.Active, hook.TokenID, hook.UpdatedAt = c.form("active") == "true", 0, time.Now().UTC()
	if err := d.DB.UpdateWebhook(c.ctx, &hook); err != nil {
		return err
	}
	if hook.Active {
		return c.seeOther(item.Path, "The webhook is on. It receives what happens from now on.")
	}
	return c.seeOther(item.Path, "The webhook is off. What happens meanwhile is not kept for it.")
}

func (d *Dashboard) testWebhook(c *call, item webhookItem) error {
	err := d.DB.TestWebhook(c.ctx, c.account.ID, item.ID)
	if schema.ErrorCode(err) == schema.CodeNotFound {
		return d.refuseWebhook(c, item, item.formOf(), problems{"": webhook.NoRoom})
	}
	if err != nil {
		return err
	}
	return c.seeOther(item.Path+"#deliveries", "A test event is on its way. Its result appears below.")
}

func (d *Dashboard) rotateSecret(c *call, item webhookItem) error {
	item.Secret = webhook.NewSecret()
	err := d.DB.RotateSecret(c.ctx, c.account.ID, item.ID, item.Secret, time.Now().Add(webhook.SecretOverlap))
	if err != nil {
		return err
	}
	return d.showSecret(c, item.Webhook, true)
}

func (d *Dashboard) deleteWebhook(c *call, item webhookItem) error {
	if err := d.DB.DeleteWebhook(c.ctx, c.account.ID, item.ID); err != nil {
		return err
	}
	return c.seeOther(pathWebhooks, "The webhook was deleted.")
}
