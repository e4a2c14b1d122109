package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func TestFormsAreBounded(t *testing.T) {
	s := start(t, openSignUp)
	// fill returns a form whose encoding has n bytes.
	fill := func(size int, form url.Values) url.Values {
		form.Set("filler", "")
		form.Set("filler", strings.Repeat("x", size-len(form.Encode())))
		return form
	}
	t.Run("to 8 KiB without a session", func(t *testing.T) {
		for _, path := range []string{"/dashboard/sign-in", "/dashboard/sign-up", "/dashboard/none"} {
			for size, tooLarge := range map[int]bool{8 << 10: false, 8<<10 + 1: true, 60 << 10: true} {
				a := s.browser(t).send("POST", path, fill(size, url.Values{"email": {"x"}, "password": {"y"}}))
				if is := a.status == http.StatusRequestEntityTooLarge; is != tooLarge {
					t.Errorf("%s with %d bytes: %d %s", path, size, a.status, a.text())
				}
			}
		}
	})
	t.Run("to 64 KiB for others", func(t *testing.T) {
		b := s.signedIn(t)
		csrf := csrfField.FindStringSubmatch(b.get("/dashboard/links").body)[1]
		form := url.Values{"csrf": {csrf}, "long_url": {"https://example.com/"}}
		b.send("POST", "/dashboard/links", fill(64<<10, form)).want(t, http.StatusSeeOther)
		b.send("POST", "/dashboard/links", fill(64<<10+1, form)).want(t, http.StatusRequestEntityTooLarge,
			"The body is larger than 64 KiB.")
	})
	t.Run("to nothing for forms without a session", func(t *testing.T) {
		a := s.browser(t).send("POST", "/dashboard/links", fill(1<<20, url.Values{}))
		a.wantTo(t, "/dashboard/sign-in?notice=ended&next=%2Fdashboard%2Flinks")
	})
}
