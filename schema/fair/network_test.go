package fair_test

import (
	"net/netip"
	"testing"

	"linkstream/schema/fair"
	"linkstream/schema/testkit"
)

func TestNetwork(t *testing.T) {
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
		testkit.Equal(t, "subnet of "+c.addr, fair.Subnet(addr).String(), c.subnet)
		testkit.Equal(t, "site of "+c.addr, fair.Site(addr).String(), c.site)
	}
}

func TestCount(t *testing.T) {
	proxy := netip.MustParseAddr("192.0.2.9")
	c := fair.NewCount(2, fair.Site, func(addr netip.Addr) bool { return addr == proxy })
	enter := func(addr string) (counted, ok bool) {
		t.Helper()
		return c.Enter(netip.MustParseAddr(addr))
	}
	want := func(addr string, wantCounted, wantOK bool) {
		t.Helper()
		if counted, ok := enter(addr); counted != wantCounted || ok != wantOK {
			t.Errorf("%s: counted %t, ok %t", addr, counted, ok)
		}
	}
	want("192.0.2.1", true, true)
	want("::ffff:192.0.2.1", true, true)
	want("192.0.2.1", false, false)
	want("192.0.2.2", true, true)
	want("2001:db8:1:1::1", true, true)
	want("2001:db8:1:2::1", true, true)
	want("2001:db8:1:3::1", false, false)
	want("2001:db8:2:1::1", true, true)
	for range 5 {
		want("192.0.2.9", false, true)
	}
	c.Leave(netip.MustParseAddr("192.0.2.1"))
	want("192.0.2.1", true, true)
	want("192.0.2.1", false, false)
	testkit.Equal(t, "networks", c.Networks(), 4)
	for _, addr := range []string{"192.0.2.1", "192.0.2.1", "192.0.2.2", "2001:db8:1:1::1", "2001:db8:1:1::1", "2001:db8:2:1::1"} {
		c.Leave(netip.MustParseAddr(addr))
	}
	testkit.Equal(t, "networks when all have left", c.Networks(), 0)

	unbounded := fair.NewCount(0, fair.Subnet, nil)
	if counted, ok := unbounded.Enter(proxy); counted || !ok {
		t.Errorf("without a bound: counted %t, ok %t", counted, ok)
	}
	one := fair.NewCount(1, fair.Subnet, nil)
	if testing.AllocsPerRun(100, func() { one.Enter(proxy); one.Leave(proxy) }) != 0 {
		t.Error("a connection allocates")
	}
}
