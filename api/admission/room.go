package admission

import (
	"io"
	"sync"

	"github.com/valyala/fasthttp"
)

const (
	roomOfAll     = 64 << 20 // bytes
	roomOfAccount = 8 << 20
	// small is the number of bytes of each body that are not counted: the bound of connections bounds their memory.
	small = 64 << 10
)

var (
	errNoRoom          = &Refusal{fasthttp.StatusServiceUnavailable, "Too many large requests at the moment."}
	errNoRoomOfAccount = &Refusal{fasthttp.StatusTooManyRequests, "Too many large requests from this account at the same time."}
)

// Room bounds the memory of large request bodies, for each account and for all together, so that many slow uploads cannot exhaust
// it. Bytes count when they arrive. The methods may be called concurrently.
type Room struct {
	ofAll, ofAccount int // limits in bytes

	mu    sync.Mutex
	all   int
	taken map[int64]int // by account
}

// NewRoom returns an empty room.
func NewRoom() *Room { return newRoom(roomOfAll, roomOfAccount) }

func newRoom(ofAll, ofAccount int) *Room {
	return &Room{ofAll: ofAll, ofAccount: ofAccount, taken: map[int64]int{}}
}

// ReadBody is the function ReadBody for large bodies. It returns a *Refusal with status 429 or 503 if there is no room. The caller
// must call leave after the last use of the body, also after an error.
func (r *Room) ReadBody(http *fasthttp.RequestCtx, account int64, limit int) (leave func(), err error) {
	g := &guest{room: r, account: account}
	err = readBody(http, limit, func(body io.Reader) io.Reader {
		g.body = body
		return g
	})
	return g.leave, err
}

// guest is a body that is being read or used. It belongs to the goroutine that serves its request.
type guest struct {
	room     *Room
	account  int64
	body     io.Reader
	received int
	counted  int // bytes in the room
}

// Read returns a *Refusal if there is no room for the bytes.
func (g *guest) Read(p []byte) (int, error) {
	n, err := g.body.Read(p)
	g.received += n
	if need := g.received - small - g.counted; need > 0 {
		if refusal := g.room.enter(g.account, need); refusal != nil {
			return 0, refusal
		}
		g.counted += need
	}
	return n, err
}

func (g *guest) leave() {
	g.room.enter(g.account, -g.counted)
	g.counted = 0
}

// enter counts bytes. A negative number gives bytes back.
func (r *Room) enter(account int64, bytes int) *Refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case bytes > 0 && r.taken[account]+bytes > r.ofAccount:
		return errNoRoomOfAccount
	case bytes > 0 && r.all+bytes > r.ofAll:
		return errNoRoom
	}
	r.all += bytes
	if r.taken[account] += bytes; r.taken[account] == 0 {
		delete(r.taken, account)
	}
	return nil
}
