package schema

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/json"
	"slices"
	"time"
)

// MaxDeliveryClicks is how many clicks a delivery has at most.
const MaxDeliveryClicks = 500

// clockTolerance is how far an edge's clock may be behind the store's: clicks from so long before a webhook subscribed
// to clicks are sent, too.
const clockTolerance = time.Minute

// ClickHookStore makes deliveries of clicks for webhooks that subscribe to clicks. It has lane marks and positions of
// its own and changes them with the deliveries, atomically: the protocol is ClickStore's.
type ClickHookStore interface {
	// ClickHookAccounts returns the accounts with webhooks that are on and subscribe to clicks, in ascending order.
	ClickHookAccounts(ctx context.Context) ([]int64, error)
	// QueuedPosition is ClickStore.Position.
	QueuedPosition(ctx context.Context, partition int) (Position, error)
	// QueuedMarks is ClickStore.LaneMarks.
	QueuedMarks(ctx context.Context, lanes []Lane) ([]uint64, error)
	// QueueClicks adds the clicks of a batch to the waiting deliveries of the webhooks that subscribe to them, and moves
	// the marks of its lanes and the position of the partition, atomically. CodeConflict, and nothing is changed, if the
	// partition's position is not batch.Base of batch.BaseEpoch, or if a lane's mark has reached its first click. When it
	// returns nil, all is on the disk. Clicks that exceed a webhook's room are dropped; the store counts their deliveries.
	QueueClicks(ctx context.Context, batch *ClickBatch) error
}

// ClickEvent is a click in the form that webhooks receive. A delivery of EventLinkClicked has one in each line of its
// data.
type ClickEvent struct {
	ID        string `json:"id"` // unique for ever, the same in each repetition
	Hash      string `json:"hash"`
	DomainID  *int64 `json:"domain_id"` // nil: the default domain
	ClickedAt string `json:"clicked_at"`
	Device    Device `json:"device"`
	Browser   string `json:"browser"` // "" if unknown, as the names that follow
	OS        string `json:"os"`
	Language  string `json:"language"`
	Referrer  string `json:"referrer"`
	Country   string `json:"country"`
	Bot       bool   `json:"bot"`
	Route     string `json:"route"` // "": the link's URL
}

// clickID returns the ID of a click for others. It is a hash, because sequence numbers would reveal how many clicks the
// service has.
func clickID(lane Lane, seq uint64) string {
	var identity [28]byte
	copy(identity[:], lane.Incarnation[:])
	binary.BigEndian.PutUint32(identity[16:], lane.Number)
	binary.BigEndian.PutUint64(identity[20:], seq)
	hash := sha256.Sum256(identity[:])
	return "clk_" + base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(hash[:16])
}

// LaneSpan is a lane's part of a batch.
type LaneSpan struct {
	Lane        Lane
	First, Last uint64
}

// LaneSpans returns the lanes of a batch, in their order.
func (b *ClickBatch) LaneSpans() []LaneSpan {
	index := map[Lane]int{}
	var lanes []LaneSpan
	for i, lane := range b.Lane {
		at, known := index[lane]
		if !known {
			at = len(lanes)
			index[lane] = at
			lanes = append(lanes, LaneSpan{Lane: lane, First: b.Seq[i]})
		}
		lanes[at].Last = b.Seq[i]
	}
	slices.SortFunc(lanes, func(a, b LaneSpan) int { return a.Lane.Compare(b.Lane) })
	return lanes
}

// Accounts returns the accounts of a batch.
func (b *ClickBatch) Accounts() []int64 {
	accounts := slices.Clone(b.AccountID)
	slices.Sort(accounts)
	return slices.Compact(accounts)
}

// ClickHook is a webhook that subscribes to clicks.
type ClickHook struct {
	ID, AccountID int64
	DomainID      int64 // of Hash
	Hash          string
	Tag           string
	PeopleOnly    bool
	Since         time.Time // it receives clicks since then
	Waiting       int64     // bytes
}

// ClickedLink has the fields of a link that a webhook's filter and its ClickEvents need.
type ClickedLink struct {
	ID, DomainID int64
	Hash         string
	Tags         []string
}

// ClickChunk is a part of a delivery of clicks.
type ClickChunk struct {
	Data   string // ClickEvents, each in a line
	Clicks int
}

// HookClicks is a batch's addition to the waiting deliveries of a webhook.
type HookClicks struct {
	HookID  int64
	Chunks  []ClickChunk // for which it has room
	Bytes   int          // of their data
	Dropped int          // others
}

// ForHooks returns the batch's additions for webhooks. links has the existing links of ClickedBy: a link that was
// deleted and created again has lost its former hash and tags.
func (b *ClickBatch) ForHooks(hooks []ClickHook, links map[int64]ClickedLink) (all []HookClicks) {
	ofAccount := b.clicksOf(hooks)
	for _, hook := range hooks {
		if chosen := hook.choose(b, ofAccount[hook.AccountID], links); len(chosen.Chunks) > 0 || chosen.Dropped > 0 {
			all = append(all, chosen)
		}
	}
	return all
}

// ClickedBy returns the links that the clicks of the webhooks' accounts are on.
func (b *ClickBatch) ClickedBy(hooks []ClickHook) (links []int64) {
	for _, clicks := range b.clicksOf(hooks) {
		for _, i := range clicks {
			links = append(links, b.LinkID[i])
		}
	}
	slices.Sort(links)
	return slices.Compact(links)
}

// clicksOf returns the indexes of the clicks of the webhooks' accounts.
func (b *ClickBatch) clicksOf(hooks []ClickHook) map[int64][]int {
	ofAccount := make(map[int64][]int)
	for _, hook := range hooks {
		ofAccount[hook.AccountID] = nil
	}
	for i, account := range b.AccountID {
		if clicks, subscribed := ofAccount[account]; subscribed {
			ofAccount[account] = append(clicks, i)
		}
	}
	return ofAccount
}

// choose returns the additions of some clicks of a batch, by their indexes, for the webhook.
func (h *ClickHook) choose(batch *ClickBatch, clicks []int, links map[int64]ClickedLink) HookClicks {
	chosen := HookClicks{HookID: h.ID}
	var data []byte
	n := 0
	end := func() {
		if size := chosen.Bytes + len(data); h.Waiting+int64(size) > MaxWebhookWaiting {
			chosen.Dropped++
		} else {
			chosen.Bytes = size
			chosen.Chunks = append(chosen.Chunks, ClickChunk{string(data), n})
		}
		data, n = data[:0], 0
	}
	for _, i := range clicks {
		link := links[batch.LinkID[i]]
		if !h.matches(batch, i, link) {
			continue
		}
		data = append(append(data, clickEvent(batch, i, link)...), '\n')
		if n++; n == MaxDeliveryClicks {
			end()
		}
	}
	if n > 0 {
		end()
	}
	return chosen
}

func (h *ClickHook) matches(batch *ClickBatch, i int, link ClickedLink) bool {
	return !(h.PeopleOnly && batch.Device[i] == Bot) && !batch.ClickedAt[i].Before(h.Since.Add(-clockTolerance)) &&
		(h.Hash == "" || h.Hash == link.Hash && h.DomainID == link.DomainID) &&
		(h.Tag == "" || slices.Contains(link.Tags, h.Tag))
}

func clickEvent(batch *ClickBatch, i int, link ClickedLink) []byte {
	event := ClickEvent{ID: clickID(batch.Lane[i], batch.Seq[i]), Hash: link.Hash,
		ClickedAt: batch.ClickedAt[i].UTC().Format("2006-01-02T15:04:05.000-07:00"), Device: batch.Device[i],
		Browser: batch.Browser[i],
		OS:      batch.OS[i], Language: batch.Language[i], Referrer: batch.Referrer[i], Country: batch.Country[i],
		Bot: batch.Device[i] == Bot, Route: batch.Route[i]}
	if link.DomainID != 0 {
		event.DomainID = &link.DomainID
	}
	text, err := json.Marshal(event)
	if err != nil {
		panic(err) // a struct of strings
	}
	return text
}
