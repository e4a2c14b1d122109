package linkpassword

import (
	"context"
	"fmt"
	"net/netip"
	"time"
	"unicode/utf8"

	"linkstream/api/auth"
	"linkstream/api/ratelimit"
	"linkstream/schema"
	"linkstream/schema/turns"
)

// underWay bounds the attempts whose hashes wait to be computed. Links take turns, and all attempts together are one
// client of the pool of passwords. So a flood of attempts at one link delays other links and sign-ins by one or two
// hashes at most.
var underWay = turns.Limits{Places: 2, Waiting: 1024, WaitingEach: 128}

// Guard checks passwords of things of one kind, such as links, and limits the attempts. Its methods may be called
// concurrently.
type Guard struct {
	pool     *auth.PasswordPool
	attempts *ratelimit.AttemptLimiter
	turns    *turns.Turns

	byThingAndAddress, byThingAndSite, byAddress, bySite, byThing ratelimit.AttemptLimit
}

// NewGuard returns a Guard. Attempts are limited by the windows of now; nil: time.Now.
//
// Many people may share an address. The limit of a thing, over all networks, is above what the visitors of a link need,
// and still protects a random password of four small letters for days.
func NewGuard(kind string, store schema.AttemptStore, pool *auth.PasswordPool, now func() time.Time) *Guard {
	one, all := "password of a "+kind, "passwords of "+kind+"s"
	return &Guard{
		pool: pool, attempts: ratelimit.NewAttemptLimiter(store, now), turns: turns.New(underWay),
		byThingAndAddress: ratelimit.AttemptLimit{Purpose: one + " by address", PerMinute: 10, PerHour: 60},
		byThingAndSite:    ratelimit.AttemptLimit{Purpose: one + " by /48", PerMinute: 40, PerHour: 240},
		byAddress:         ratelimit.AttemptLimit{Purpose: all + " by address", PerMinute: 60, PerHour: 600},
		bySite:            ratelimit.AttemptLimit{Purpose: all + " by /48", PerMinute: 240, PerHour: 2400},
		byThing:           ratelimit.AttemptLimit{Purpose: one, PerMinute: 3000, PerHour: 3000},
	}
}

// Check returns whether a password is right, or how long the client must wait, in whole seconds. hash returns the
// hash of the password of the thing with that ID: "" if it has none, so that every password is right; CodeNotFound if
// there is no such thing.
func (g *Guard) Check(
	ctx context.Context, id int64, client netip.Addr, password string, hash func() (string, error),
) (right bool, wait time.Duration, err error) {
	if utf8.RuneCountInString(auth.PreparePassword(password)) > schema.MaxLinkPasswordLen {
		return false, 0, nil
	}
	if wait, err = g.attempts.Allow(ctx, g.limits(id, client)...); err != nil || wait > 0 {
		return false, wait, err
	}
	known, err := hash()
	switch {
	case schema.ErrorCode(err) == schema.CodeNotFound:
		return false, 0, nil
	case err != nil:
		return false, 0, err
	case known == "":
		return true, 0, nil
	}
	if g.turns.Take(ctx, turns.Item(id), 1) != nil {
		return false, time.Second, nil
	}
	defer g.turns.Leave(turns.Item(id))
	right, err = g.pool.Verify(ctx, turns.Client{}, known, password)
	return right, 0, err
}

// limits returns the limits that count an attempt.
func (g *Guard) limits(id int64, client netip.Addr) []ratelimit.Attempt {
	subnet, thing := turns.Subnet(client).String(), fmt.Sprint(id)
	all := []ratelimit.Attempt{
		g.byThingAndAddress.By(thing + " " + subnet), g.byAddress.By(subnet), g.byThing.By(thing),
	}
	if client.Is6() && !client.Is4In6() {
		site := turns.Site(client).String()
		all = append(all, g.byThingAndSite.By(thing+" "+site), g.bySite.By(site))
	}
	return all
}
