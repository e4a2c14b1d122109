package request

import (
	"context"
	"time"

	"github.com/valyala/fasthttp"

	"linkstream/schema"
	"linkstream/schema/service"
	"linkstream/schema/turns"
)

// Price says what the work of a handler grows with, and where it takes turns. Every route of the API and of the
// dashboard has one. The zero Price is not a price.
type Price struct {
	grows string                         // with this
	turns func(*Work) *turns.Turns       // around the handler; nil: the handler takes turns where it works
	of    func(*fasthttp.RequestCtx) int // of a request in turns; nil: 1
}

var (
	// Constant is the price of a few rows by their keys, and of an answer of bounded size.
	Constant = Price{grows: "nothing"}
	// Reads is the price of reads that grow with what the account has. Package reads has their turns.
	Reads = Price{grows: "what the account has"}
	// Passwords is the price of an argon2 hash, if the request has a password. auth.PasswordPool has their turns.
	Passwords = Price{grows: "passwords"}
	// Streams is the price of a stream of live counts. live.Hub bounds them by account.
	Streams = Price{grows: "time"}
	// Sends is the price of a file that is sent at the pace of its client. Files.Send sends one to an account at a time.
	Sends = Price{grows: "the size of a file that is sent"}
	// Uploads is the price of a file that is received at the pace of its client. transfer.Uploads bounds them by account.
	Uploads = Price{grows: "the size of a file that is received"}
	// Nested is the price of requests that a request makes, which have prices of their own.
	Nested = Price{grows: "other requests"}
	// Writes is the price of changes of many links.
	Writes = Price{grows: "links", turns: func(w *Work) *turns.Turns { return w.writes }}
)

// Pixels is the price of drawing an image. of returns the price of a request.
func Pixels(of func(*fasthttp.RequestCtx) int) Price {
	return Price{grows: "pixels", turns: func(w *Work) *turns.Turns { return w.images }, of: of}
}

// IsZero reports whether p is the zero Price.
func (p Price) IsZero() bool { return p.grows == "" }

// Waits reports whether handlers wait for a turn before they begin.
func (p Price) Waits() bool { return p.turns != nil }

// maxTurnWait bounds how long a handler waits for its turn.
const maxTurnWait = 20 * time.Second

// Work is the turns of the handlers of a process. Images are drawn on at most half of the CPUs. An account has two of
// the places for writes, fewer than a link store has connections, since its writes wait for each other in the store.
type Work struct{ images, writes *turns.Turns }

// NewWork returns Work that has not begun.
func NewWork() *Work {
	return &Work{
		images: turns.New(turns.Limits{Places: max(1, service.CPUs()/2), Waiting: 256, WaitingEach: 32}),
		writes: turns.New(turns.Limits{Places: 8, PlacesEach: 2, Waiting: 256, WaitingEach: 32}),
	}
}

var errManyCalls = schema.ClientErrorf(schema.CodeBusy,
	"Other calls of your account are still under way: wait for their answers, or try again later.")

// Do calls f when it is the client's turn. CodeBusy if too many calls of the client wait, or its turn does not come
// in time.
func (w *Work) Do(http *fasthttp.RequestCtx, p Price, c turns.Client, f func() error) error {
	if !p.Waits() {
		return f()
	}
	ctx, cancel := context.WithTimeout(Context(http), maxTurnWait)
	defer cancel()
	t, price := p.turns(w), 1
	if p.of != nil {
		price = p.of(http)
	}
	if t.Take(ctx, c, price) != nil {
		return errManyCalls
	}
	defer t.Leave(c)
	return f()
}
