package dashboard

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/valyala/fasthttp"

	"linkstream/api/request"
)

//go:embed static
var staticFiles embed.FS

// scriptParts are the files of static/script that make up script.js, in this order. Pages load them by one request.
var scriptParts = []string{"times", "controls", "create", "dialog", "tabs", "place", "forms", "heat", "live", "keys",
	"wall"}

const assetRoot = Root + "/static/"

// assets are the files that pages load. Each URL carries a hash of the content, so browsers may cache it for ever.
type assets struct {
	urls  map[string]string // by file name
	files map[string]asset  // by the last path element
	// symbols are the URLs of symbols by file#id.
	symbols map[string]string
}

type asset struct {
	contentType string
	content     []byte
	gzipped     []byte
}

// loadAssets returns the assets, which all dashboards of the process share: they never change.
var loadAssets = sync.OnceValues(newAssets)

func newAssets() (assets, error) {
	a := assets{map[string]string{}, map[string]asset{}, map[string]string{}}
	entries, err := fs.ReadDir(staticFiles, "static")
	if err != nil {
		return assets{}, err
	}
	best, err := gzip.NewWriterLevel(nil, gzip.BestCompression)
	if err != nil {
		return assets{}, err
	}
	add := func(file string, content []byte) {
		digest := sha256.Sum256(content)
		ext := path.Ext(file)
		name := strings.TrimSuffix(file, ext) + "." + hex.EncodeToString(digest[:4]) + ext
		a.urls[file] = assetRoot + name
		a.files[name] = asset{contentType(ext), content, gzipped(best, content)}
		a.addSymbols(file, content)
	}
	for _, entry := range entries {
		if entry.IsDir() {
			continue
		}
		content, err := fs.ReadFile(staticFiles, "static/"+entry.Name())
		if err != nil {
			return assets{}, err
		}
		add(entry.Name(), content)
	}
	var script []byte
	for _, part := range scriptParts {
		content, err := fs.ReadFile(staticFiles, "static/script/"+part+".js")
		if err != nil {
			return assets{}, err
		}
		script = append(script, content...)
	}
	add("script.js", script)
	return a, nil
}

// contentType fixes the types that the dashboard uses, because the machine's MIME table may contain anything.
func contentType(ext string) string {
	switch ext {
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".png":
		return "image/png"
	}
	return mime.TypeByExtension(ext)
}

// url returns the path of a file.
func (a assets) url(name string) (string, error) {
	url, ok := a.urls[name]
	if !ok {
		return "", fmt.Errorf("there is no asset %q", name)
	}
	return url, nil
}

func (d *Dashboard) serveAsset(http *fasthttp.RequestCtx) {
	name, _ := http.UserValue("file").(string)
	file, ok := d.assets.files[name]
	if !ok {
		d.handler(request.OtherRoute, admitNobody, request.Constant, func(*call) error { return errNoPage })(http)
		return
	}
	request.SetRoute(http, assetRoot+"{file}")
	defer func(began time.Time) {
		d.Requests.Observe(assetRoot+"{file}", http.Response.StatusCode(), began)
	}(time.Now())
	http.SetContentType(file.contentType)
	http.Response.Header.Set(fasthttp.HeaderCacheControl, "public, max-age=31536000, immutable")
	http.Response.Header.Set(fasthttp.HeaderVary, fasthttp.HeaderAcceptEncoding)
	if request.AcceptsGzip(http) {
		http.Response.Header.SetContentEncoding("gzip")
		http.Response.SetBodyRaw(file.gzipped)
		return
	}
	http.Response.SetBodyRaw(file.content)
}
