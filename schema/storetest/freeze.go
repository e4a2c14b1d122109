package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/linkstore"
	"linkstream/schema/testkit"
)

// ofNobody are methods that processes call by themselves. Accounts do not wait for a process that stands still in one.
var ofNobody = []string{"TakeChanges", "PurgeLinks", "UseTokens", "QueueClicks", "ClaimWebhooks", "WaitingDeliveries",
	"NoteDelivery", "ReleaseWebhook", "DomainsToCheck", "NoteDomainCheck", "ContestDomain", "LeaseRequests",
	"CountAttempts", "AddLeaseHolder", "TakeLease", "StateLeases", "EndLeases", "NoteCertificate"}

const (
	// crowd is how many calls of an account wait for a transaction: many more than a process has connections.
	crowd = 60
	// promptForMixed bounds a call for several accounts, one of them locked. Postgres ends the lock after 2 s.
	promptForMixed = 3 * time.Second
	// promptForOthers bounds a call of another account than the one that a process has locked.
	promptForOthers = time.Second
)

// TestFrozen lets a process stand still at each step of each method that changes something, with the locks that it has
// taken. Meanwhile another process answers another account's calls as promptly as ever, also while many calls of the
// locked account wait there, which succeed in the end.
func TestFrozen(t *testing.T, frozen, other *linkstore.Store) {
	b := newBystander(t, other)
	for i, w := range writings {
		if w.method == "CreateFirstAccount" { // there are no others' calls before it
			continue
		}
		t.Run(strings.TrimSuffix(w.method+", "+w.what, ", "), func(t *testing.T) {
			f := fixture{t: t, store: frozen, name: fmt.Sprintf("f%d", i)}
			f.owner = addAccount(t, frozen, f.name+"@example.org")
			own := f.link("own")
			c := w.begin(f)
			begin := func() call { return c }
			freezeEachStep(t, frozen, begin, func(within testkit.Within, _ call) (wait func()) {
				b.t = t
				waiting := b.crowd(own)
				t.Cleanup(waiting)
				if slices.Contains(ofNobody, w.method) {
					within("the account itself", promptForOthers, waiting)
				}
				b.call(within)
				return waiting
			})
		})
	}
}

// TestFrozenCrowd lets a process stand still at each step of a call, while many calls like it wait in another process,
// which answers another account's calls as promptly as ever.
func TestFrozenCrowd(t *testing.T, frozen, other *linkstore.Store) {
	b := newBystander(t, other)
	for i, w := range writings {
		if !slices.Contains([]string{"RevokeToken", "DeleteDomain", "ResendDelivery", "DeleteShare"}, w.method) {
			continue
		}
		t.Run(w.method, func(t *testing.T) {
			tries := 0
			begin := func() call {
				tries++
				f := fixture{t: t, store: frozen, name: fmt.Sprintf("c%d-%d", i, tries)}
				f.owner = addAccount(t, frozen, f.name+"@example.org")
				return w.begin(f)
			}
			b.t = t
			freezeEachStep(t, frozen, begin, func(within testkit.Within, c call) (wait func()) {
				waiting := b.crowdOf(func(int) error { return c(t.Context(), other) })
				t.Cleanup(waiting)
				b.call(within)
				return waiting
			})
		})
	}
}

// TestFrozenSender lets a process stand still in a change that its owner's webhook gets, while many outcomes of
// deliveries to the webhook wait in another process, and a batch of clicks on links of two accounts.
func TestFrozenSender(t *testing.T, frozen, other *linkstore.Store) {
	b, tries := newBystander(t, other), 0
	var f fixture
	var hook schema.Webhook
	var delivery schema.Delivery
	var mixed *schema.ClickBatch
	begin := func() call {
		tries++
		f = fixture{t: t, store: frozen, name: fmt.Sprintf("s%d", tries)}
		f.owner = addAccount(t, frozen, f.name+"@example.org")
		hook = f.tested(true)
		delivery, mixed = f.delivery(hook), f.clicks(b.link, f.link("clicked"))
		return f.changes(func(*schema.LinkChanges) {}, f.link("one"))
	}
	freezeEachStep(t, frozen, begin, func(within testkit.Within, _ call) (wait func()) {
		waiting := b.crowdOf(func(n int) error {
			if n%2 == 0 {
				_, err := other.WaitingDeliveries(t.Context(), f.owner.ID, hook.ID, 10)
				return err
			}
			_, err := other.NoteDelivery(t.Context(), f.owner.ID, hook.ID, f.name, delivery, schema.DeliveryNote{})
			return err
		})
		t.Cleanup(waiting)
		b.call(within)
		within("a batch of clicks of both accounts", promptForMixed, func() {
			testkit.Must(t, other.QueueClicks(t.Context(), mixed))
		})
		return waiting
	})
}

// errThawed ends the calls of a process that stood still, so that they can be repeated.
var errThawed = errors.New("the process goes on")

// freezeEachStep makes calls of begin, lets each stand still at another step, and calls meanwhile.
func freezeEachStep(
	t *testing.T, frozen *linkstore.Store, begin func() call, meanwhile func(testkit.Within, call) (wait func()),
) {
	t.Helper()
	for at := 1; at <= maxSteps; at++ {
		stands := false
		testkit.Promptly(t, func(within testkit.Within) {
			c := begin()
			stands = freezeStep(t, frozen, c, at, func() (wait func()) { return meanwhile(within, c) })
		})
		if !stands {
			return
		}
	}
	t.Errorf("the call has more than %d steps", maxSteps)
}

// freezeStep lets c stand still at a step, and calls meanwhile. It returns false if c has fewer steps.
func freezeStep(t *testing.T, frozen *linkstore.Store, c call, at int, meanwhile func() (wait func())) bool {
	t.Helper()
	step, reached, thaw, outcome := 0, make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		outcome <- c(t.Context(), Watched(frozen, func(context.Context, Step) error {
			if step++; step != at {
				return nil
			}
			close(reached)
			<-thaw
			return errThawed
		}))
	}()
	select {
	case err := <-outcome:
		testkit.Must(t, err)
		return false
	case <-reached:
	}
	wait := meanwhile()
	close(thaw)
	err := <-outcome
	wait()
	if !errors.Is(err, errThawed) {
		t.Fatalf("step %d: %v", at, err)
	}
	return true
}

// bystander is an account and its process.
type bystander struct {
	t      *testing.T
	store  *linkstore.Store
	owner  schema.Account
	link   schema.Link
	token  int64
	called int
}

func newBystander(t *testing.T, store *linkstore.Store) *bystander {
	b := &bystander{t: t, store: store, owner: addAccount(t, store, "bystander@example.org")}
	b.link = addLink(t, store, b.owner.ID, 0, "bystander")
	b.token = addToken(t, store, b.owner.ID, "bystander").ID
	addWebhook(t, store, b.owner.ID, clickHook(func(h *schema.Webhook) { h.Events = hookEvents }))
	return b
}

// call makes calls of the bystander, each of which must be prompt.
func (b *bystander) call(within testkit.Within) {
	b.t.Helper()
	ctx := b.t.Context()
	name := fmt.Sprint("bystander", b.called)
	for what, call := range map[string]func() error{
		"CreateLink": func() error {
			link := newLink(b.owner.ID, 0, name)
			return b.store.CreateLink(ctx, &link)
		},
		"CreateLinks": func() error { return b.store.CreateLinks(ctx, newCall(b.owner.ID, name, epoch, name+"bulk")) },
		"ChangeLinks": func() error {
			c := newChange(b.owner.ID, b.link.ID, "tag")
			c.Call = nil
			return b.store.ChangeLinks(ctx, c)
		},
		"ValidTokens":   func() error { _, err := b.store.ValidTokens(ctx, []int64{b.token}); return err },
		"LeaseRequests": func() error { _, _, err := b.store.LeaseRequests(ctx, b.token, window(1), rateLimit); return err },
		"QueueClicks": func() error {
			f := fixture{t: b.t, store: b.store, owner: b.owner, name: name}
			return b.store.QueueClicks(ctx, f.clicks(f.link("clicked")))
		},
	} {
		within(what+" of another account", promptForOthers, func() {
			if err := call(); err != nil {
				b.t.Errorf("%s of another account: %v", what, err)
			}
		})
	}
}

// crowd begins many calls of an account that may be locked, and returns a function that waits until they have
// succeeded.
func (b *bystander) crowd(own schema.Link) (wait func()) {
	called := b.called
	return b.crowdOf(func(n int) error {
		switch n {
		case 0, 1, 2, 3:
			link := newLink(own.AccountID, 0, fmt.Sprint(own.Hash, "-", called, "-", n))
			return b.store.CreateLink(b.t.Context(), &link)
		case 4, 5:
			edited := own
			return b.store.UpdateLink(b.t.Context(), &edited, schema.LinkEdit{Title: new("new")}, hour(1))
		default: // which is no event of a webhook
			return b.store.SetProfile(b.t.Context(), own.AccountID, schema.Profile{TimeZone: "UTC"})
		}
	})
}

// crowdOf begins many calls, and returns a function that waits until they have ended. Of equal calls, some may find
// that another one has done their work.
func (b *bystander) crowdOf(c func(n int) error) (wait func()) {
	b.called++
	var calls sync.WaitGroup
	for n := range crowd {
		calls.Go(func() {
			switch err := c(n); schema.ErrorCode(err) {
			case schema.CodeInternal, schema.CodeUnavailable:
				b.t.Errorf("a call that waits: %v", err)
			}
		})
	}
	return calls.Wait
}
