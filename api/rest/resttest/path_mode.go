package resttest

import (
	"net/http"
	"testing"

	"linkstream/schema/testkit"
)

const pathTarget, pathPattern = "https://example.com/a", "https://example.com/{path}?q={path}"

// pathLink creates a link and returns its path in the API.
func (c Caller) pathLink(t *testing.T, fields Object) (path string) {
	t.Helper()
	if fields["long_url"] == nil {
		fields["long_url"] = pathTarget
	}
	return "/api/v1/links/" + c.Link(t, fields)["hash"].(string)
}

// hasPathMode requires a mode of the link at a path.
func (c Caller) hasPathMode(t *testing.T, path string, want any) {
	t.Helper()
	testkit.Equal(t, "path_mode", c.Get(t, path).Want(t, http.StatusOK).Body["link"].(Object)["path_mode"], want)
}

// testPathModes tests what becomes of paths behind an alias, as far as the API says it.
func testPathModes(t *testing.T, s System) {
	owner := s.account(t)
	t.Run("a link has the mode that it is given, else none", func(t *testing.T) {
		for given, want := range map[any]any{"none": "none", "ignore": "ignore", "append": "append", nil: "none",
			"": "none"} {
			owner.hasPathMode(t, owner.pathLink(t, Object{"path_mode": given}), want)
		}
		owner.hasPathMode(t, owner.pathLink(t, Object{}), "none")
	})
	t.Run("edits change it", func(t *testing.T) {
		path := owner.pathLink(t, Object{"path_mode": "append", "max_clicks": 7})
		for _, c := range []struct{ body, want string }{{`{"path_mode":"ignore"}`, "ignore"},
			{`{"max_clicks":null}`, "ignore"}, {`{"path_mode":null}`, "none"}, {`{"path_mode":"append"}`, "append"}} {
			link := owner.Call(t, http.MethodPatch, path, c.body).Want(t, http.StatusOK).Body["link"].(Object)
			testkit.Equal(t, c.body, link["path_mode"], any(c.want))
			owner.hasPathMode(t, path, c.want)
		}
	})
	t.Run("other values are invalid", func(t *testing.T) {
		path := owner.pathLink(t, Object{})
		for _, value := range []string{`"keep"`, `"Append"`, `1`, `true`, `["append"]`} {
			owner.Call(t, http.MethodPost, "/api/v1/shorten", `{"long_url":"`+pathTarget+`","path_mode":`+value+`}`).
				WantError(t, http.StatusUnprocessableEntity, "path_mode")
			owner.Call(t, http.MethodPatch, path, `{"path_mode":`+value+`}`).
				WantError(t, http.StatusUnprocessableEntity, "path_mode")
		}
		owner.Call(t, http.MethodPatch, path, `{"path_mode":""}`).WantError(t, http.StatusUnprocessableEntity, "path_mode")
	})
}

// testPathPatterns tests long URLs that say where the path behind the alias goes.
func testPathPatterns(t *testing.T, s System) {
	owner := s.account(t)
	t.Run("{path} in path or query implies append", func(t *testing.T) {
		for _, url := range []string{pathPattern, "https://example.com?{path}", "https://example.com/a/{path}/b"} {
			path := owner.pathLink(t, Object{"long_url": url})
			owner.hasPathMode(t, path, "append")
			owner.hasPathMode(t, owner.pathLink(t, Object{"long_url": url, "path_mode": "append"}), "append")
			owner.Call(t, http.MethodPatch, path, `{"title":"T"}`).Want(t, http.StatusOK)
			owner.hasPathMode(t, path, "append")
			owner.Call(t, http.MethodPatch, path, `{"path_mode":"none"}`).
				WantError(t, http.StatusUnprocessableEntity, "path_mode")
			owner.Call(t, http.MethodPatch, path, `{"path_mode":"ignore","long_url":"`+pathTarget+`"}`).Want(t, http.StatusOK)
			owner.hasPathMode(t, path, "ignore")
			owner.Call(t, http.MethodPatch, path, `{"long_url":"`+url+`"}`).Want(t, http.StatusOK)
			owner.hasPathMode(t, path, "append")
			owner.Call(t, http.MethodPatch, path, `{"long_url":"`+pathTarget+`"}`).Want(t, http.StatusOK)
			owner.hasPathMode(t, path, "none")
			owner.Call(t, http.MethodPost, "/api/v1/shorten", `{"long_url":"`+url+`","path_mode":"none"}`).
				WantError(t, http.StatusUnprocessableEntity, "path_mode")
		}
	})
	t.Run("%7Bpath%7D and {path} in the fragment are literal", func(t *testing.T) {
		for _, url := range []string{"https://example.com/%7Bpath%7D", "https://example.com/a#{path}",
			"https://example.com/{PATH}"} {
			owner.hasPathMode(t, owner.pathLink(t, Object{"long_url": url}), "none")
		}
	})
	t.Run("{path} is invalid in scheme, user, host and port", func(t *testing.T) {
		for _, url := range []string{"{path}://example.com/", "https://{path}@example.com/", "https://{path}/",
			"https://{path}.example.com/", "https://example.{path}/", "https://example.com{path}", "https://example.com:{path}/",
			"https://example.com:8{path}/", "{path}", "//{path}/"} {
			owner.Call(t, http.MethodPost, "/api/v1/shorten", `{"long_url":"`+url+`"}`).
				WantError(t, http.StatusUnprocessableEntity, "long_url")
		}
	})
	t.Run("bulk takes and edits it", func(t *testing.T) {
		hash := owner.Call(t, http.MethodPost, "/api/v1/links/bulk", `{"links":[{"long_url":"`+pathTarget+
			`","path_mode":"append"}]}`).Want(t, http.StatusOK).Body["results"].([]any)[0].(Object)["hash"].(string)
		owner.hasPathMode(t, "/api/v1/links/"+hash, "append")
		owner.Call(t, http.MethodPost, "/api/v1/links/bulk/edit", `{"links":[{"hash":"`+hash+
			`"}],"set":{"path_mode":"ignore"}}`).Want(t, http.StatusOK)
		owner.hasPathMode(t, "/api/v1/links/"+hash, "ignore")
		owner.Call(t, http.MethodPost, "/api/v1/links/bulk/edit", `{"links":[{"hash":"`+hash+
			`"}],"set":{"long_url":"`+pathPattern+`"}}`).Want(t, http.StatusOK)
		owner.hasPathMode(t, "/api/v1/links/"+hash, "append")
	})
}
