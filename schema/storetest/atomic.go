package storetest

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"linkstream/schema"
	"linkstream/schema/linkstore"
	"linkstream/schema/testkit"
)

// maxSteps bounds the steps of a call.
const maxSteps = 100

// changesRows matches statements that change rows.
var changesRows = regexp.MustCompile(`\b(INSERT INTO|UPDATE \w+|DELETE FROM)\b`)

// TestAtomicity fails each step of each method that changes something, in the engine where it is a statement: the
// method returns an error and changes no row, and succeeds when it is called again. rows returns all rows of the store,
// which is empty. calls are the statements of a run of TestDatabase, from which the test takes the methods.
func TestAtomicity(t *testing.T, store *linkstore.Store, rows func(t *testing.T) []string, calls *Texts) {
	tested := map[string]bool{}
	for i, w := range writings {
		tested[w.method] = true
		t.Run(strings.TrimSuffix(w.method+", "+w.what, ", "), func(t *testing.T) {
			f := fixture{t: t, store: store, name: fmt.Sprintf("n%d", i)}
			if w.method != "CreateFirstAccount" {
				f.owner = addAccount(t, store, f.name+"@example.org")
			}
			failEachStep(t, store, rows, w.begin(f))
		})
	}
	calls.mu.Lock()
	defer calls.mu.Unlock()
	called := map[string]bool{}
	for of := range calls.all {
		called[of[0]] = true
		if changesRows.MatchString(of[1]) && !tested[of[0]] {
			t.Errorf("%s changes rows, and no step of it was failed", of[0])
			tested[of[0]] = true
		}
	}
	for _, method := range Methods[schema.Database]() {
		if !called[method] {
			t.Errorf("no suite calls %s", method)
		}
	}
}

func failEachStep(t *testing.T, store *linkstore.Store, rows func(t *testing.T) []string, c call) {
	t.Helper()
	before := rows(t)
	for failed := 1; failed <= maxSteps; failed++ {
		step, text := 0, ""
		err := c(t.Context(), Watched(store, func(_ context.Context, s Step) error {
			if step++; step != failed {
				return nil
			}
			text = strings.Join(strings.Fields(s.Text), " ")
			return ErrInEngine
		}))
		after := rows(t)
		if step < failed {
			testkit.Must(t, err)
			if slices.Equal(before, after) {
				t.Error("the call changes nothing")
			}
			return
		}
		if err == nil {
			t.Errorf("step %d, %q, fails, and the call succeeds", failed, text)
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Fatalf("step %d, %q, fails, and rows differ (-before +after):\n%s", failed, text, diff)
		}
	}
	t.Errorf("the call has more than %d steps", maxSteps)
}

// call is a call of a method. It can be repeated.
type call func(ctx context.Context, s schema.Database) error

// writing is a method that changes rows, and a way to call it. begin prepares the store and returns the call.
type writing struct {
	method, what string
	begin        func(f fixture) call
}

// fixture is what a call can use. Other calls have other names and owners.
type fixture struct {
	t     *testing.T
	store schema.Database
	name  string
	owner schema.Account
}

// link adds a link of the owner.
func (f fixture) link(hash string) schema.Link {
	return addLink(f.t, f.store, f.owner.ID, 0, f.name+hash)
}

// deleted adds a link of the owner and deletes it.
func (f fixture) deleted(hash string) schema.Link {
	link := f.link(hash)
	testkit.Must(f.t, f.store.DeleteLink(f.t.Context(), link, hour(1)))
	return link
}

func (f fixture) host() string { return f.name + ".example.org" }

// hookEvents are the events of links, clicks among them.
var hookEvents = []string{schema.EventLinkClicked, schema.EventLinkCreated, schema.EventLinkDeleted,
	schema.EventLinkUpdated}

// tested adds a webhook of the owner for which a test and, if clicks is set, clicks wait.
func (f fixture) tested(clicks bool) schema.Webhook {
	hook := addWebhook(f.t, f.store, f.owner.ID, clickHook(func(h *schema.Webhook) { h.Events = hookEvents }))
	testkit.Must(f.t, f.store.TestWebhook(f.t.Context(), f.owner.ID, hook.ID))
	if clicks {
		for range 2 {
			testkit.Must(f.t, f.store.QueueClicks(f.t.Context(), f.clicks(f.link(fmt.Sprint("c", time.Now().UnixNano())))))
		}
	}
	return webhookOf(f.t, f.store, hook)
}

// clicks returns a batch of clicks on links, in a partition of the last link.
func (f fixture) clicks(links ...schema.Link) *schema.ClickBatch {
	last, clicks := links[len(links)-1], []click(nil)
	for _, link := range links {
		clicks = append(clicks, clickNow(link, 3)...)
	}
	for i := range clicks {
		clicks[i].lane = lane(byte(last.ID), uint32(last.ID))
	}
	return newModel().batch(int(last.ID), clicks...)
}

// delivery claims a webhook for holder f.name, and returns the first delivery that waits.
func (f fixture) delivery(hook schema.Webhook) schema.Delivery {
	f.t.Helper()
	if !slices.Contains(claim(f.t, f.store, f.name, longLease), hook.ID) {
		f.t.Fatal("the webhook is not claimed")
	}
	all, err := f.store.WaitingDeliveries(f.t.Context(), hook.AccountID, hook.ID, 1)
	testkit.Must(f.t, err)
	return all[0]
}

// holder adds a holder of leases, which has one of a link.
func (f fixture) holder() (holder schema.Incarnation, link schema.Link) {
	copy(holder[:], f.name)
	link = addLimitedLink(f.t, f.store, f.owner.ID, f.name, 100)
	testkit.Must(f.t, f.store.AddLeaseHolder(f.t.Context(), holder))
	_, err := f.store.TakeLease(f.t.Context(), holder, schema.LimitLease{LinkID: link.ID, Call: 1, Granted: -1})
	testkit.Must(f.t, err)
	return holder, link
}

// batch is a call of CreateLinks with links of some hashes, after edit.
func (f fixture) batch(edit func(*schema.LinkBatch), hashes ...string) call {
	for i := range hashes {
		if hashes[i] != "" {
			hashes[i] = f.name + hashes[i]
		}
	}
	return func(ctx context.Context, s schema.Database) error {
		b := newCall(f.owner.ID, f.name, epoch, hashes...)
		edit(b)
		return errors.Join(s.CreateLinks(ctx, b), errors.Join(b.Errs...))
	}
}

// changes is a call of ChangeLinks with some links, after edit.
func (f fixture) changes(edit func(*schema.LinkChanges), links ...schema.Link) call {
	return func(ctx context.Context, s schema.Database) error {
		c := newChange(f.owner.ID, 0, "tag")
		c.IDs = nil
		for _, link := range links {
			c.IDs = append(c.IDs, link.ID)
		}
		edit(c)
		return errors.Join(s.ChangeLinks(ctx, c), errors.Join(c.Errs...))
	}
}
