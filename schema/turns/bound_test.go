package turns_test

import (
	"errors"
	"net/netip"
	"testing"

	"linkstream/schema/testkit"
	"linkstream/schema/turns"
)

func TestBound(t *testing.T) {
	b, one, two := turns.NewBound(10, 6), turns.Account(1), turns.Account(2)
	for _, step := range []struct {
		client turns.Client
		n      int
		want   error
	}{
		{one, 4, nil}, {one, 3, turns.ErrEach}, {one, 2, nil}, {two, 5, turns.ErrAll}, {two, 1, nil},
		{turns.Client{}, 4, turns.ErrAll}, {turns.Client{}, 3, nil}, // has no bound of its own
	} {
		if err := b.Take(step.client, step.n); !errors.Is(err, step.want) {
			t.Errorf("%d for %v: %v, want %v", step.n, step.client, err, step.want)
		}
	}
	testkit.Equal(t, "total", b.Total(), 10)
	b.Leave(one, 1)
	testkit.Must(t, b.Take(two, 1)) // a part was given back
	b.Leave(one, 5)
	b.Leave(two, 2)
	b.Leave(turns.Client{}, 3)
	testkit.Equal(t, "total at the end", b.Total(), 0)

	if turns.NewBound(0, 0).Take(one, 1<<40) != nil {
		t.Error("a bound of 0 is one")
	}
	if testing.AllocsPerRun(100, func() { _ = b.Take(one, 1); b.Leave(one, 1) }) != 0 {
		t.Error("a connection allocates")
	}
}

func TestNetworks(t *testing.T) {
	for _, c := range []struct{ addr, subnet, site string }{
		{"192.0.2.1", "192.0.2.1", "192.0.2.1"},
		{"::ffff:192.0.2.1", "192.0.2.1", "192.0.2.1"},
		{"255.255.255.255", "255.255.255.255", "255.255.255.255"},
		{"2001:db8:1:2:3:4:5:6", "2001:db8:1:2::", "2001:db8:1::"},
		{"2001:db8:1:ffff:ffff:ffff:ffff:ffff", "2001:db8:1:ffff::", "2001:db8:1::"},
		{"fe80::1%eth0", "fe80::", "fe80::"},
		{"", "0.0.0.0", "0.0.0.0"},
	} {
		var addr netip.Addr
		if c.addr != "" {
			addr = netip.MustParseAddr(c.addr)
		}
		testkit.Equal(t, "subnet of "+c.addr, turns.Subnet(addr).String(), c.subnet)
		testkit.Equal(t, "site of "+c.addr, turns.Site(addr).String(), c.site)
	}
	if turns.Account(3) == turns.Readers(3) {
		t.Error("an account and its readers are one client")
	}
}
