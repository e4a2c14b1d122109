package dashboard_test

import (
	"strings"
	"testing"

	"linkstream/api/clickreport"
	"linkstream/api/dashboard"
	"linkstream/schema"
)

func TestCSV(t *testing.T) {
	var out strings.Builder
	err := dashboard.WriteCSV(&out, []dashboard.Day{{Date: "2026-11-20"},
		{Date: "2026-11-21", Count: clickreport.Count{Period: schema.Period{People: 1200, Bots: 34},
			Visitors: new(int64(56))}}})
	want := "\ufeffdate,people,bots,total,visitors\n2026-11-20,0,0,0,\n2026-11-21,1200,34,1234,56\n"
	if err != nil || out.String() != want {
		t.Errorf("got %q, error %v; want %q", out.String(), err, want)
	}
	out.Reset()
	err = dashboard.WriteCSV(&out, []dashboard.Day{{Date: "2026-11-20"},
		{Date: "2026-11-21", Count: clickreport.Count{Period: schema.Period{People: 1, Imported: 300}}}})
	want = "\ufeffdate,people,bots,total,visitors,imported\n2026-11-20,0,0,0,,0\n2026-11-21,1,0,301,,300\n"
	if err != nil || out.String() != want {
		t.Errorf("with imported clicks: got %q, error %v; want %q", out.String(), err, want)
	}
}
