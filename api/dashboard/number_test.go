package dashboard_test

import (
	"math"
	"testing"

	"linkstream/api/dashboard"
)

func TestNumber(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 12: "12", 999: "999", 1000: "1,000", 123456: "123,456",
		1234567: "1,234,567", -1: "-1", -123: "-123", -1234: "-1,234", math.MaxInt64: "9,223,372,036,854,775,807"} {
		if got := dashboard.Number(n); got != want {
			t.Errorf("Number(%d) = %s, want %s", n, got, want)
		}
	}
}
