package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestConsoleOrigin: an origin is what browsers send of it, to the letter, and is no name of
// this machine's own.
func TestConsoleOrigin(t *testing.T) {
	long := strings.Repeat(strings.Repeat("a", 63)+".", 3)
	for origin, host := range map[string]string{
		"https://writ.example.org": "writ.example.org", "https://writ": "writ", "https://writ.example.org:8443": "writ.example.org:8443", "https://1.xn--p1ai": "1.xn--p1ai",
		"https://a-b.c:1": "a-b.c:1", "https://localhost.example": "localhost.example", "https://writ:65535": "writ:65535", "https://" + long + strings.Repeat("a", 61): long + strings.Repeat("a", 61),
		"": "", "http://writ.example.org": "", "HTTPS://writ.example.org": "", "https://": "", "writ.example.org": "", "//writ.example.org": "",
		"https://writ.example.org/": "", "https://writ.example.org/console": "", "https://writ.example.org?x": "", "https://writ.example.org#x": "", "https://kim@writ.example.org": "",
		"https://Writ.example.org": "", "https://writ.example.org.": "", "https://writ..org": "", "https://.org": "", "https://-a.org": "", "https://a-.org": "", "https://a_b.org": "", "https://wr\u00eft.org": "",
		"https://*.example.org": "", "https://writ.example.org:443": "", "https://writ.example.org:": "", "https://writ.example.org:0": "", "https://writ.example.org:08443": "", "https://writ.example.org:65536": "", "https://writ.example.org:99999": "",
		"https://writ.example.org:8443:1": "", "https://127.0.0.1": "", "https://10.0.0.5:8443": "", "https://[::1]": "", "https://[2001:db8::1]:8443": "", "https://2130706433": "",
		"https://localhost": "", "https://localhost:8443": "", "https://writ.localhost": "", "https://writ.example.org\n": "", " https://writ.example.org": "", "https://writ.example.org evil": "",
		"https://" + strings.Repeat("a", 64) + ".org": "", "https://" + long + strings.Repeat("a", 62): "",
	} {
		file := filepath.Join(t.TempDir(), "writ.yaml")
		if err := os.WriteFile(file, fmt.Appendf(nil, "policy: policy.yaml\nservers: [{ name: a, command: [a] }]\nconsole:\n  origin: %q\n", origin), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Read(file)
		switch {
		case host != "" && (err != nil || c.Console.Host() != host):
			t.Errorf("%q: %v", origin, err)
		case host == "" && (err == nil || !strings.HasPrefix(err.Error(), file+":4:11: ")):
			t.Errorf("%q: %v", origin, err)
		}
	}
}
