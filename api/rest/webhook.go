package rest

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"linkstream/api/auth"
	"linkstream/api/links"
	"linkstream/api/request"
	"linkstream/api/webhook"
	"linkstream/schema"
)

const noWebhook = "There is no such webhook."

type webhookItem struct {
	ID           int64    `json:"id"`
	URL          string   `json:"url"`
	Events       []string `json:"events"`
	Hash         *string  `json:"hash"`
	DomainID     *int64   `json:"domain_id"`
	Tag          *string  `json:"tag"`
	PeopleOnly   bool     `json:"people_only"`
	IsActive     bool     `json:"is_active"`
	OffReason    *string  `json:"off_reason"`
	FailingSince *string  `json:"failing_since"`
	WaitingBytes int64    `json:"waiting_bytes"`
	Dropped      int64    `json:"dropped"`
	CreatedAt    string   `json:"created_at"`
	UpdatedAt    string   `json:"updated_at"`
}

type webhookAnswer struct {
	Success bool        `json:"success"`
	Webhook webhookItem `json:"webhook"`
	Secret  string      `json:"secret,omitempty"`
}

// orNil returns a pointer to s, nil for "".
func orNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func newWebhookItem(h schema.Webhook) webhookItem {
	item := webhookItem{ID: h.ID, URL: h.URL, Events: h.Events, Hash: orNil(h.Hash), Tag: orNil(h.Tag),
		PeopleOnly: h.PeopleOnly,
		IsActive:   h.Active, OffReason: orNil(h.OffReason), WaitingBytes: h.Waiting, Dropped: h.Dropped,
		CreatedAt: formatTime(h.CreatedAt), UpdatedAt: formatTime(h.UpdatedAt)}
	if h.DomainID != 0 {
		item.DomainID = &h.DomainID
	}
	if h.OffReason == schema.OffToken { // version 1 has no such reason
		item.OffReason = nil
	}
	if !h.FailingSince.IsZero() {
		item.FailingSince = new(formatTime(h.FailingSince))
	}
	return item
}

func (a *API) routeWebhooks() {
	a.route(fasthttp.MethodPost, pathWebhooks, request.Constant, a.createWebhook)
	a.route(fasthttp.MethodGet, pathWebhooks, request.Constant, a.listWebhooks)
	a.route(fasthttp.MethodGet, pathWebhook, request.Constant, a.ofWebhook(a.getWebhook))
	a.route(fasthttp.MethodPatch, pathWebhook, request.Constant, a.ofWebhook(a.editWebhook))
	a.route(fasthttp.MethodDelete, pathWebhook, request.Constant, a.ofWebhook(a.deleteWebhook))
	a.route(fasthttp.MethodPost, pathWebhook+"/test", request.Constant, a.ofWebhook(a.testWebhook))
	a.route(fasthttp.MethodPost, pathWebhook+"/rotate", request.Constant, a.ofWebhook(a.rotateSecret))
	a.route(fasthttp.MethodGet, pathWebhook+"/deliveries", request.Constant, a.ofWebhook(a.listDeliveries))
	a.route(fasthttp.MethodPost, pathWebhook+"/deliveries/{delivery}/resend", request.Constant,
		a.ofWebhook(a.resendDelivery))
}

// createWebhook answers POST /api/v1/webhooks.
func (a *API) createWebhook(c *call) error {
	body, err := decodeBody(c)
	if err != nil {
		return err
	}
	body.emptyIsMissing = true
	now := time.Now().UTC()
	hook := schema.Webhook{AccountID: c.account, PeopleOnly: true, Active: true, Secret: webhook.NewSecret(),
		CreatedAt: now, UpdatedAt: now}
	for _, field := range []string{webhook.FieldURL, webhook.FieldEvents} {
		if body.field(field) == "" {
			body.reject(field, "This is required.")
		}
	}
	if err := a.setWebhook(c, &hook, body); err != nil {
		return err
	}
	err = a.links.CreateWebhook(c.ctx, &hook)
	if schema.ErrorCode(err) == schema.CodeConflict {
		return invalidField(webhook.FieldURL, webhook.TooMany)
	}
	if err != nil {
		return webhookError(err)
	}
	return answer(c.http, fasthttp.StatusCreated, webhookAnswer{true, newWebhookItem(hook), hook.Secret})
}

const webhookOutage = "Webhooks cannot be read or changed"

// setWebhook sets hook to what a body asks for.
func (a *API) setWebhook(c *call, hook *schema.Webhook, body *body) error {
	for _, field := range []string{webhook.FieldURL, webhook.FieldEvents, webhook.FieldPeopleOnly, links.FieldIsActive} {
		if body.isNull(field) {
			body.reject(field, "This must not be null.")
		}
	}
	problems, err := a.webhooks.Apply(c.ctx, a.shortener, hook, body.webhookEdit())
	if err != nil {
		return withOutage(readingLinks, err)
	}
	for field, messages := range body.malformed {
		problems[field] = messages
	}
	if len(problems) > 0 {
		return links.InvalidFields(problems)
	}
	for _, event := range hook.Events {
		if !schema.HasScope(c.scopes, scopeOfEvent(event)) {
			return errScope
		}
	}
	hook.TokenID = c.token
	return nil
}

// webhookEdit returns the fields of a webhook in the body.
func (b *body) webhookEdit() (edit webhook.Edit) {
	b.decodeOptional(webhook.FieldURL, &edit.URL, "The URL must be a string.")
	edit.Events = decoded[[]string](b, webhook.FieldEvents, webhook.BadEvents)
	edit.PeopleOnly = decoded[bool](b, webhook.FieldPeopleOnly, badActive)
	edit.Active = decoded[bool](b, links.FieldIsActive, badActive)
	b.decodeOptional(fieldHash, &edit.Hash, "The hash must be a string or null.")
	b.decodeOptional(webhook.FieldTag, &edit.Tag, "The tag must be a string or null.")
	b.decode(links.FieldDomainID, &edit.DomainID, badDomainID)
	edit.AnyLink, edit.AnyTag = b.isNull(fieldHash), b.isNull(webhook.FieldTag)
	return edit
}

// decoded returns a field that is not null, nil if the body does not have it or it has another type.
func decoded[T any](b *body, field, problem string) *T {
	value := new(T)
	if b.field(field) == "" || b.isNull(field) {
		return nil
	}
	if b.decode(field, value, problem); b.malformed[field] != nil {
		return nil
	}
	return value
}

// scopeOfEvent returns the scope that a token needs for webhooks of an event, in addition to ScopeWebhooks: the scope
// that requests for the same data need.
func scopeOfEvent(event string) string {
	if event == schema.EventLinkClicked {
		return schema.ScopeReadReports
	}
	return schema.ScopeReadLinks
}

// listWebhooks answers GET /api/v1/webhooks.
func (a *API) listWebhooks(c *call) error {
	return answerPage(c, webhookOutage, a.links.Webhooks, newWebhookItem)
}

// idInPath returns the ID in the path, or 0, which no object has, if the path has no valid one.
func idInPath(c *call) int64 {
	id, _ := strconv.ParseInt(c.http.UserValue("id").(string), 10, 64)
	return id
}

// ofWebhook lets handle answer for the caller's webhook whose ID is in the path.
func (a *API) ofWebhook(handle func(*call, schema.Webhook) error) func(*call) error {
	return func(c *call) error {
		hook, err := a.links.Webhook(c.ctx, c.account, idInPath(c))
		if err != nil {
			return webhookError(err)
		}
		return handle(c, hook)
	}
}

// webhookError is the error of a call with the ID of a webhook.
func webhookError(err error) error {
	switch schema.ErrorCode(err) {
	case schema.CodeNotFound:
		return schema.ClientErrorf(schema.CodeNotFound, noWebhook)
	case schema.CodeUnauthorized: // the token was revoked a moment ago
		return auth.ErrUnauthorized
	}
	return withOutage(webhookOutage, err)
}

// getWebhook answers GET /api/v1/webhooks/{id}.
func (a *API) getWebhook(c *call, hook schema.Webhook) error {
	return answer(c.http, fasthttp.StatusOK, webhookAnswer{Success: true, Webhook: newWebhookItem(hook)})
}

// editWebhook answers PATCH /api/v1/webhooks/{id}.
func (a *API) editWebhook(c *call, hook schema.Webhook) error {
	body, err := decodeBody(c)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(body.fields, func(m member) bool {
		return slices.Contains([]string{webhook.FieldURL, webhook.FieldEvents, fieldHash, webhook.FieldTag,
			webhook.FieldPeopleOnly, links.FieldDomainID, links.FieldIsActive}, m.name)
	}) {
		return invalidField(webhook.FieldURL, "Give at least one field to change.")
	}
	if err := a.setWebhook(c, &hook, body); err != nil {
		return err
	}
	hook.UpdatedAt = time.Now().UTC()
	if err := a.links.UpdateWebhook(c.ctx, &hook); err != nil {
		return webhookError(err)
	}
	return a.getWebhook(c, hook)
}

// deleteWebhook answers DELETE /api/v1/webhooks/{id}.
func (a *API) deleteWebhook(c *call, hook schema.Webhook) error {
	if err := a.links.DeleteWebhook(c.ctx, c.account, hook.ID); err != nil {
		return webhookError(err)
	}
	return answer(c.http, fasthttp.StatusOK, done{true})
}

type done struct {
	Success bool `json:"success"`
}

// testWebhook answers POST /api/v1/webhooks/{id}/test.
func (a *API) testWebhook(c *call, hook schema.Webhook) error {
	err := a.links.TestWebhook(c.ctx, c.account, hook.ID)
	if schema.ErrorCode(err) == schema.CodeNotFound {
		return invalidField(links.FieldIsActive, webhook.NoRoom)
	}
	if err != nil {
		return withOutage(webhookOutage, err)
	}
	return answer(c.http, fasthttp.StatusAccepted, done{true})
}

// rotateSecret answers POST /api/v1/webhooks/{id}/rotate.
func (a *API) rotateSecret(c *call, hook schema.Webhook) error {
	secret := webhook.NewSecret()
	if err := a.links.RotateSecret(c.ctx, c.account, hook.ID, secret, time.Now().Add(webhook.SecretOverlap)); err != nil {
		return webhookError(err)
	}
	return answer(c.http, fasthttp.StatusOK, webhookAnswer{true, newWebhookItem(hook), secret})
}

type deliveryItem struct {
	ID            string  `json:"id"`
	At            string  `json:"at"`
	Event         string  `json:"event"`
	Status        string  `json:"status"`
	Attempts      int     `json:"attempts"`
	NextAttemptAt *string `json:"next_attempt_at"`
	Error         *string `json:"error"`
}

// listDeliveries answers GET /api/v1/webhooks/{id}/deliveries.
func (a *API) listDeliveries(c *call, hook schema.Webhook) error {
	deliveries, err := a.links.Deliveries(c.ctx, hook.ID)
	if err != nil {
		return withOutage(webhookOutage, err)
	}
	items := []deliveryItem{}
	for _, d := range deliveries {
		item := deliveryItem{ID: d.Message, At: formatTime(d.At), Event: d.Event, Status: d.Status, Attempts: d.Attempts,
			Error: orNil(d.Error)}
		if d.Status == schema.DeliveryWaiting {
			item.NextAttemptAt = new(formatTime(hook.NextAt)) // those behind the first one follow it
		}
		items = append(items, item)
	}
	return answer(c.http, fasthttp.StatusOK, list[deliveryItem]{true, items})
}

// resendDelivery answers POST /api/v1/webhooks/{id}/deliveries/{delivery}/resend.
func (a *API) resendDelivery(c *call, hook schema.Webhook) error {
	if !hook.Active {
		return invalidField(links.FieldIsActive, webhook.IsOff)
	}
	err := a.links.ResendDelivery(c.ctx, hook.AccountID, hook.ID,
		strings.ToValidUTF8(c.http.UserValue("delivery").(string), ""))
	if schema.ErrorCode(err) == schema.CodeNotFound {
		return schema.ClientErrorf(schema.CodeNotFound, "There is no such delivery.")
	}
	if err != nil {
		return withOutage(webhookOutage, err)
	}
	return answer(c.http, fasthttp.StatusAccepted, done{true})
}
