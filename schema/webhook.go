package schema

import (
	"context"
	"encoding/json"
	"strings"
	"time"
)

// Limits of webhooks.
const (
	MaxWebhooks       = 10       // per account
	MaxWebhookWaiting = 64 << 20 // bytes of data that wait for one webhook
	MaxDeliveries     = 100      // that are kept of one webhook when they do not wait any more
	MaxWebhookAnswer  = 1 << 10  // bytes of a receiver's answer that are kept
)

// Events that a webhook may subscribe to. EventTest is sent on request.
const (
	EventLinkClicked   = "link.clicked"
	EventLinkCreated   = "link.created"
	EventLinkUpdated   = "link.updated"
	EventLinkDeleted   = "link.deleted"
	EventDomainChanged = "domain.changed"
	EventTest          = "webhook.test"
)

// Reasons for which the service switches a webhook off.
const (
	OffGone    = "gone"    // the receiver has answered 410
	OffFailing = "failing" // no delivery has succeeded for days
	OffToken   = "token"   // its token was revoked or has expired
)

// Webhook is a URL that receives an account's events. While it is off, no event is kept for it.
type Webhook struct {
	ID, AccountID  int64
	URL            string
	Events         []string // in alphabetical order
	DomainID       int64    // of Hash
	Hash           string   // only events of this link; "": of all
	Tag            string   // only events of links with this tag before or after the event; "": of all
	PeopleOnly     bool
	Active         bool
	OffReason      string // why the service has switched it off; "" if it has not
	Secret         string // whsec_ and base64 (Standard Webhooks)
	OldSecret      string // signs in addition to Secret until OldSecretUntil; "" for none
	OldSecretUntil time.Time
	CreatedAt      time.Time
	UpdatedAt      time.Time
	TokenID        int64     // of the token that created or last changed the webhook, which ends with it; 0: none
	ExpiresAt      time.Time // when the token expires; zero: never

	Waiting      int64 // bytes of data that wait
	Dropped      int64 // deliveries that were dropped: the webhook had no room, or was switched off
	FailingSince time.Time
	NextAt       time.Time // no attempt is made before
	AttemptedAt  time.Time // of the last attempt; zero: none
	LastError    string    // of the last attempt; "" if it succeeded
}

// States of a delivery.
const (
	DeliveryWaiting   = "waiting"
	DeliveryDelivered = "delivered"
	DeliveryFailed    = "failed"
)

// Delivery is a message to a webhook. Messages of a webhook are sent in the order of their IDs, one after the other.
type Delivery struct {
	ID       int64
	Message  string // the webhook-id: random, the same for all attempts, never given twice
	Event    string
	At       time.Time // of the event
	Data     string    // JSON: a LinkEvent, a DomainEvent, or {} of EventTest
	Status   string
	Attempts int
	Error    string // of the last attempt; "" if it succeeded
	Answer   Answer // to the last attempt

	AttemptedAt time.Time // of the last attempt; zero: none, or one by a program of 1.0.0
}

// Answer is what a receiver has answered to an attempt.
type Answer struct {
	Status int           // of HTTP; 0: there was no answer
	Took   time.Duration // of the attempt, in whole milliseconds
	Text   string        // the first MaxWebhookAnswer bytes, as valid UTF-8 without NUL
}

// DeliveryNote is the outcome of an attempt.
type DeliveryNote struct {
	Delivered bool
	Error     string
	Answer    Answer
	Pause     time.Duration // until the next attempt, unless Delivered
	Off       string        // a reason to switch the webhook off; "": it stays on
	Lease     time.Duration // the holder goes on for at most this time if Delivered; 0: it has ended
}

// Status returns the state of the delivery after the attempt.
func (n DeliveryNote) Status() string {
	switch {
	case n.Delivered:
		return DeliveryDelivered
	case n.Off != "":
		return DeliveryFailed
	}
	return DeliveryWaiting
}

// WebhookStore keeps webhooks and their deliveries. A delivery of a change is added in the transaction that makes the
// change, by triggers of the store, so that no way to change a link leaves it out. Deliveries of one webhook get their
// IDs in the order of the commits.
type WebhookStore interface {
	// CreateWebhook stores a webhook and sets its ID and ExpiresAt. CodeConflict if the account has MaxWebhooks,
	// CodeUnauthorized if the token is revoked.
	CreateWebhook(ctx context.Context, hook *Webhook) error
	// Webhooks returns the webhooks of an account in the order of their IDs.
	Webhooks(ctx context.Context, accountID int64) ([]Webhook, error)
	// Webhook returns a webhook of the account. CodeNotFound if it has no such webhook.
	Webhook(ctx context.Context, accountID, id int64) (Webhook, error)
	// UpdateWebhook stores URL, Events, DomainID, Hash, Tag, PeopleOnly, Active, UpdatedAt and TokenID of a webhook, and
	// forgets that it was failing or switched off. A holder loses it, so that what waits is not sent to the former URL,
	// but its lease goes on: there is one attempt at a time. If it is off, deliveries that wait are dropped. hook becomes
	// the stored webhook. CodeNotFound if the account has no such webhook, CodeUnauthorized if the token is revoked.
	UpdateWebhook(ctx context.Context, hook *Webhook) error
	// RotateSecret replaces the secret. The former secret also signs until the given time. CodeNotFound if the account has
	// no such webhook.
	RotateSecret(ctx context.Context, accountID, id int64, secret string, until time.Time) error
	// DeleteWebhook deletes a webhook and its deliveries. CodeNotFound if the account has no such webhook.
	DeleteWebhook(ctx context.Context, accountID, id int64) error
	// TestWebhook adds an EventTest. CodeNotFound if the account has no such webhook, it is off or has no room, or
	// MaxDeliveries wait: a test has so little data that it is bounded by number.
	TestWebhook(ctx context.Context, accountID, id int64) error
	// Deliveries returns the newest MaxDeliveries deliveries of the webhook, the newest first, without their data and
	// the texts of answers. Clicks that wait to be put into a delivery are not among them.
	Deliveries(ctx context.Context, webhookID int64) ([]Delivery, error)
	// Delivery returns one of them, with its data and the answer. CodeNotFound if the webhook has no such delivery.
	Delivery(ctx context.Context, webhookID int64, message string) (Delivery, error)
	// ResendDelivery lets a delivery wait again, in its old place. Idempotent. CodeNotFound if the active webhook has no
	// such delivery.
	ResendDelivery(ctx context.Context, accountID, webhookID int64, message string) error

	// ClaimWebhooks gives up to limit webhooks with waiting deliveries to holder, for the duration lease by the store's
	// clock. It leaves out webhooks of suspended accounts and prefers webhooks that have waited longest. Each has one
	// holder at a time. Webhooks whose token has expired are switched off.
	ClaimWebhooks(ctx context.Context, holder string, lease time.Duration, limit int) ([]Webhook, error)
	// WaitingDeliveries returns the first deliveries of a webhook that wait, up to limit. It puts the clicks that wait
	// into deliveries of up to MaxDeliveryClicks, to which no click is added afterwards.
	WaitingDeliveries(ctx context.Context, accountID, webhookID int64, limit int) ([]Delivery, error)
	// NoteDelivery stores the outcome of an attempt, and reports whether holder still has the webhook. If not, nothing is
	// stored.
	NoteDelivery(
		ctx context.Context, accountID, webhookID int64, holder string, delivery Delivery, note DeliveryNote,
	) (bool, error)
	// ReleaseWebhook ends the lease of holder, if it has the webhook.
	ReleaseWebhook(ctx context.Context, webhookID int64, holder string) error
}

// LinkEvent is a link at the moment of an event, in the form that the triggers of the stores write. Times are Unix
// milliseconds.
type LinkEvent struct {
	ID           int64  `json:"id"`
	DomainID     int64  `json:"domain_id"`
	Host         string `json:"host"`
	PathMode     string `json:"domain_path_mode"`
	Hash         string `json:"hash"`
	FormerHashes string `json:"former_hashes"`
	URL          string `json:"url"`
	Title        string `json:"title"`
	Tags         string `json:"tags"`
	Active       int    `json:"active"`
	TakenDown    int    `json:"taken_down"`
	ForwardQuery int    `json:"forward_query"`
	ExpiresAt    *int64 `json:"expires_at"`
	ExpiredURL   string `json:"expired_url"`
	Behaviour    string `json:"extension"`
	ExternalID   string `json:"external_id"`
	CreatedAt    int64  `json:"created_at"`
	UpdatedAt    *int64 `json:"updated_at"`
}

// LinkOfEvent returns the link in the data of an event.
func LinkOfEvent(data string) (Link, error) {
	var e LinkEvent
	if err := json.Unmarshal([]byte(data), &e); err != nil {
		return Link{}, err
	}
	link := Link{ID: e.ID, DomainID: e.DomainID, Host: e.Host, DomainPathMode: PathMode(e.PathMode), Hash: e.Hash,
		URL: e.URL, Title: e.Title, Tags: strings.Fields(e.Tags),
		Active: e.Active != 0, ForwardQuery: e.ForwardQuery != 0, ExpiredURL: e.ExpiredURL, ExternalID: e.ExternalID,
		CreatedAt: time.UnixMilli(e.CreatedAt).UTC()}
	link.UpdatedAt = link.CreatedAt
	if e.UpdatedAt != nil {
		link.UpdatedAt = time.UnixMilli(*e.UpdatedAt).UTC()
	}
	if e.ExpiresAt != nil {
		link.ExpiresAt = time.UnixMilli(*e.ExpiresAt).UTC()
	}
	if e.TakenDown != 0 {
		link.Stopped = TakenDown
	}
	if err := (TagsColumn{List: &link.FormerHashes}).Scan(e.FormerHashes); err != nil {
		return link, err
	}
	return link, BehaviourColumn{Of: &link.Behaviour}.Scan(e.Behaviour)
}

// DomainEvent is a domain at the moment of an event, in the form that the triggers of the stores write. Times are Unix
// milliseconds.
type DomainEvent struct {
	ID        int64  `json:"id"`
	Host      string `json:"host"`
	Verified  int    `json:"verified"`
	CreatedAt int64  `json:"created_at"`
	Deleted   int    `json:"deleted"`
}

// DomainOfEvent returns the domain in the data of an event.
func DomainOfEvent(data string) (e DomainEvent, err error) {
	err = json.Unmarshal([]byte(data), &e)
	return e, err
}
