package main

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/store/sqlite"
)

var typeLine = regexp.MustCompile(`(?m)^# TYPE (\S+) (\S+)$`)

// shownMetrics are the metrics of a gateway's page, with their types.
func shownMetrics(t *testing.T) map[string]string {
	t.Helper()
	dir := ownState(t)
	st, err := sqlite.Open(dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	o := newFiles(dir)
	o.policy = noTools()
	g, err := gateway.New(gateway.Options{Store: st, Policy: o.policy})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	o.metricsPage(g).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	shown := map[string]string{}
	for _, m := range typeLine.FindAllStringSubmatch(w.Body.String(), -1) {
		shown[m[1]] = m[2]
	}
	if len(shown) < 10 {
		t.Fatalf("the page has come apart:\n%s", w.Body)
	}
	return shown
}

func repositoryFile(t *testing.T, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(append([]string{"..", ".."}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestDashboard: what the dashboard asks for is on the page, and what is on the page is on
// the dashboard.
func TestDashboard(t *testing.T) {
	shown := shownMetrics(t)
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(repositoryFile(t, "deploy", "grafana", "writ.json")), &d); err != nil {
		t.Fatal(err)
	}
	name, part := regexp.MustCompile(`\b(?:writ|mcp)_\w+\b`), regexp.MustCompile(`_(bucket|sum|count)$`)
	asked := map[string]bool{}
	for _, p := range d.Panels {
		for _, x := range p.Targets {
			found := 0
			for _, m := range name.FindAllString(regexp.MustCompile(`(by|max by) \([^)]*\)|\{[^}]*\}`).ReplaceAllString(x.Expr, ""), -1) {
				of := m
				if shown[m] == "" && part.MatchString(m) {
					of = part.ReplaceAllString(m, "")
				}
				if is := shown[of]; is == "" || (is == "histogram") != (of != m) {
					t.Errorf("%s asks for %s, which is not on the page", p.Title, m)
				}
				asked[of] = true
				found++
			}
			if found == 0 {
				t.Errorf("%s asks for nothing: %s", p.Title, x.Expr)
			}
		}
	}
	for m := range shown {
		if !asked[m] {
			t.Errorf("%s is on no panel", m)
		}
	}
}

// TestMetricsAreDocumented: the table of docs/operations.md is of the metrics there are.
func TestMetricsAreDocumented(t *testing.T) {
	shown := shownMetrics(t)
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (counter|gauge|histogram) \\|").FindAllStringSubmatch(repositoryFile(t, "docs", "operations.md"), -1) {
		if shown[row[1]] != row[2] {
			t.Errorf("%s is documented as a %s and is %q", row[1], row[2], shown[row[1]])
		}
		delete(shown, row[1])
	}
	for m := range shown {
		t.Errorf("%s is not documented", m)
	}
}

// TestUnit: systemd takes the unit as it is, and finds little that could be closed yet.
func TestUnit(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not here: deploy/systemd/writ.service is not verified")
	}
	self, err := exec.LookPath("writ")
	if err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(t.TempDir(), "writ.service")
	text := repositoryFile(t, "deploy", "systemd", "writ.service")
	run := "ExecStart=/usr/bin/writ serve "
	if !strings.Contains(text, run) {
		t.Fatalf("the unit does not start with %q", run)
	}
	if err := os.WriteFile(unit, []byte(strings.Replace(text, run, "ExecStart="+self+" serve ", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"verify", unit}, {"security", "--offline=yes", "--threshold=20", "--no-pager", unit}} {
		out, err := exec.Command(analyze, args...).CombinedOutput()
		if err != nil && strings.Contains(string(out), "unrecognized option") {
			t.Skipf("this systemd-analyze cannot %s a file", args[0])
		}
		if err != nil || args[0] == "verify" && len(out) > 0 {
			t.Errorf("systemd-analyze %s: %v\n%s", strings.Join(args[:1], " "), err, out)
		}
	}
	given := serveCommand().Flags()
	for _, m := range regexp.MustCompile(`--([a-z-]+)`).FindAllStringSubmatch(text[strings.Index(text, run):strings.Index(text, "ExecReload")], -1) {
		if given.Lookup(m[1]) == nil {
			t.Errorf("the unit gives writ serve --%s, which it does not take", m[1])
		}
	}
	for _, want := range []string{"NoNewPrivileges=yes", "CapabilityBoundingSet=", "ProtectSystem=strict", "KillMode=mixed"} {
		if !slices.Contains(strings.Split(text, "\n"), want) {
			t.Errorf("the unit lacks %s", want)
		}
	}
}
