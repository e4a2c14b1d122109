package dashboard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"

	"linkstream/api/request"
	"linkstream/api/webhook"
	"linkstream/schema"
)

// partDeliveries names the part of a webhook's page that the script polls.
const partDeliveries = "deliveries"

// firstDeliveries is how many deliveries a webhook's page shows unless it is asked for all that are kept.
const firstDeliveries = 25

// maxPayload is how many bytes of a delivery's body its page shows.
const maxPayload = 16 << 10

func (d *Dashboard) routeDeliveries(path string) {
	d.get(path+"/deliveries/{message}", request.Constant, d.ofWebhook(d.showDelivery))
	d.post(path+"/resend", request.Constant, d.ofWebhook(d.resendDelivery))
}

// webhookPage is the data of a webhook's page.
type webhookPage struct {
	webhookItem
	Form       webhookForm
	Deliveries []deliveryItem
	More       string // path of the page with all deliveries; "": these are all
	all        bool
}

func (p webhookPage) live() (part, path string, every time.Duration) {
	path = p.Path + "?part=" + partDeliveries
	if p.all {
		path = withParam(path, "deliveries", "all")
	}
	return partDeliveries, path, pollOften
}

// deliveryItem is a delivery as shown to the owner of its webhook.
type deliveryItem struct {
	schema.Delivery
	Hook webhookItem
	zone *time.Location
}

// Path returns the path of the delivery's page.
func (i deliveryItem) Path() string { return i.Hook.Path + "/deliveries/" + i.Message }

// Moment says when the event happened, by which names of buttons differ.
func (i deliveryItem) Moment() string { return i.At.In(i.zone).Format("2 Jan 2006, 15:04:05.000") }

// State returns the state in words.
func (i deliveryItem) State() linkState {
	switch {
	case i.Status == schema.DeliveryDelivered:
		return linkState{"delivered", "good"}
	case i.Status == schema.DeliveryFailed:
		return linkState{"failed", "bad"}
	case i.Error != "":
		return linkState{"retrying", "warn"}
	}
	return linkState{"waiting", ""}
}

// Next says when the delivery is attempted again; "": not at all.
func (i deliveryItem) Next() string {
	switch at := i.Hook.NextAt.In(i.zone); {
	case i.Status != schema.DeliveryWaiting:
		return ""
	case i.Error == "":
		return "After those before"
	case time.Until(at) > 12*time.Hour:
		return at.Format("2 Jan, 15:04")
	default:
		return at.Format("15:04:05")
	}
}

// Answered says what the receiver answered to the last attempt; "": nothing is known.
func (i deliveryItem) Answered() string {
	switch {
	case i.Answer.Status == 0:
		return i.Error
	case i.Answer.Took < time.Second:
		return fmt.Sprintf("%d in %d ms", i.Answer.Status, i.Answer.Took.Milliseconds())
	}
	return fmt.Sprintf("%d in %.1f s", i.Answer.Status, i.Answer.Took.Seconds())
}

func (d *Dashboard) webhookPage(c *call, item webhookItem) (webhookPage, error) {
	page := webhookPage{webhookItem: item, Form: item.formOf(), all: c.query("deliveries") == "all"}
	all, err := d.DB.Deliveries(c.ctx, item.ID)
	if len(all) > firstDeliveries && !page.all {
		all, page.More = all[:firstDeliveries], item.Path+"?deliveries=all#deliveries"
	}
	for _, delivery := range all {
		page.Deliveries = append(page.Deliveries, deliveryItem{delivery, item, c.zone()})
	}
	return page, err
}

func (d *Dashboard) showWebhook(c *call, item webhookItem) error {
	page, err := d.webhookPage(c, item)
	if err != nil {
		return err
	}
	return d.renderLive(c, "webhook", page)
}

// deliveryPage is the data of a delivery's page.
type deliveryPage struct {
	deliveryItem
	Payload string // the beginning of the body, indented
	Cut     bool   // the payload is longer
	KiB     int64  // of the body
	Text    string // the beginning of the answer
}

func (d *Dashboard) showDelivery(c *call, item webhookItem) error {
	delivery, err := d.DB.Delivery(c.ctx, item.ID, c.pathValue("message"))
	if err != nil {
		return err
	}
	body, err := d.Webhooks.Body(delivery)
	if err != nil {
		return err
	}
	page := deliveryPage{deliveryItem: deliveryItem{delivery, item, c.zone()}, Text: visible(delivery.Answer.Text),
		KiB: int64(len(body)+1023) >> 10}
	var text bytes.Buffer
	if err := json.Indent(&text, body, "", "  "); err != nil {
		return err
	}
	page.Cut = text.Len() > maxPayload
	text.Truncate(min(text.Len(), maxPayload))
	page.Payload = visible(strings.ToValidUTF8(text.String(), ""))
	return d.render(c, "delivery", page)
}

// visible returns a text whose characters can all be seen: others could make it look like another text.
func visible(text string) string {
	var shown strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || r == '\t' || unicode.IsGraphic(r):
			shown.WriteRune(r)
		case r < ' ':
			shown.WriteRune('\u2400' + r) // the picture of a control character
		default:
			fmt.Fprintf(&shown, `\u%04x`, r)
		}
	}
	return shown.String()
}

func (d *Dashboard) resendDelivery(c *call, item webhookItem) error {
	if !item.Active {
		return d.refuseWebhook(c, item, item.formOf(), problems{"": webhook.IsOff})
	}
	if err := d.DB.ResendDelivery(c.ctx, c.account.ID, item.ID, c.form("delivery")); err != nil {
		return err
	}
	return c.seeOther(item.Path+"#deliveries", "The delivery is on its way again, with the same webhook-id.")
}
