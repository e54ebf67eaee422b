package provenance_test

import (
	"slices"
	"testing"

	"github.com/writ-project/writ/provenance"
)

func TestLinkHost(t *testing.T) {
	for link, want := range map[string]string{
		"https://A.example:443/x": "a.example", "http://localhost:3000/": "localhost:3000",
		"http://[::1]/,https://shop.example/": "::1", "https://evil.example/?u=https://shop.example/": "evil.example",
		"https://shop.example@evil.example/": "evil.example", "https://shop.example\\@evil.example/": "", "about:blank": "", "shop.example": "",
		"data:text/html,https://shop.example/": "", "file:///etc/passwd": "", "blob:https://shop.example/1": "",
	} {
		if got := provenance.LinkHost(link); got != want {
			t.Errorf("%q: %q", link, got)
		}
	}
}

func TestHosts(t *testing.T) {
	for text, want := range map[string][]string{
		"Open https://a.example/x?q=1, then (http://A.example:80) and <https://b.example:443/>.": {"a.example", "b.example"},
		"look at a.example., b.example/list; c.example:8080: and \"d.example\"":                  {"a.example", "b.example", "c.example:8080", "d.example"},
		"https://a.example./ http://localhost:3000/ https://10.0.0.1/":                           {"a.example", "localhost:3000", "10.0.0.1"},
		"mail anna@kern.example about notes.txt, v1.2 and app.py, at 10.30; a.b, localhost":      {"app.py", "a.b", "localhost"},
		"https://kim@a.example/ is a.example":                                                    {"a.example"},
		"nothing here":                                                                           nil,
	} {
		if got := provenance.Hosts(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q", text, got)
		}
	}
}
