package gateway_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/approval"
	"github.com/writ-project/writ/internal/metrics"
)

// scraped is the gateway's page as Prometheus' own parser reads it: each sample by its name
// and labels, a histogram by how much it counted.
func scraped(t *testing.T, r *rig) (page string, samples map[string]float64) {
	t.Helper()
	var p metrics.Page
	r.gw.Metrics(&p)
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(p.String()))
	if err != nil {
		t.Fatalf("%v\n%s", err, p.String())
	}
	samples = map[string]float64{}
	for name, f := range families {
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			v := m.Counter.GetValue() + m.Gauge.GetValue()
			if f.GetType() == dto.MetricType_HISTOGRAM {
				v = float64(m.Histogram.GetSampleCount())
			}
			samples[name+"{"+strings.Join(labels, " ")+"}"] = v
		}
	}
	return p.String(), samples
}

// TestMetrics: what a gateway counts of calls that pass, are refused and wait, and that
// nothing a client, a principal or a server's list chose is on the page.
func TestMetrics(t *testing.T) {
	ctx := testContext(t)
	up := newScripted(t, "toy", true)
	up.list("tools/list", strings.Replace(itemTools, `{"tools":[`, `{"tools":[{"name":"uncontracted_tool","inputSchema":{"type":"object"}},`, 1))
	r := newRig(t, onMaps(t), policy(t, strings.Replace(turnPolicy, "effect: delete", "effect: write", 1)), up.config(true))
	r.opts.Approvals = approval.New(time.Now)
	r.restart()
	secret, id, err := createSession(ctx, r.gw, "principal-kim")
	if err != nil {
		t.Fatal(err)
	}
	w := overHTTP(ctx, r, false, web{path: "/mcp/s/" + secret, bearer: "principal-kim"})

	up.reply(itemList)
	passed(t, w.call(ctx, "list_items", `{}`))
	up.reply(`"result":{"content":[],"isError":true}`)
	w.call(ctx, "delete_item", `{"id":"item-17"}`)
	refusal(t, w.call(ctx, "delete_item", `{"id":"value-4711"}`), unseen)
	hostile := []string{"uncontracted_tool", "name-x", "name-\n\"} 1", "name-\\", "name-\u202e", "name-{le=\"1\"}", "name-" + strings.Repeat("n", 3000)}
	for _, name := range hostile {
		refusal(t, w.call(ctx, name, `{"argument-name":"value-4711"}`), "INVALID_TOOL_NAME name.unknown \"\"")
	}
	page, all := scraped(t, r)
	for want, n := range map[string]float64{
		"writ_decisions_total{status=accepted code= reason=}":                                                       2,
		"writ_decisions_total{status=rejected code=MISSING_PROVENANCE reason=provenance.unseen}":                    1,
		"writ_decisions_total{status=rejected code=INVALID_TOOL_NAME reason=name.unknown}":                          6,
		"writ_decisions_total{status=rejected code=INVALID_TOOL_NAME reason=name.forbidden}":                        1,
		"writ_calls_total{server=toy outcome=ok}":                                                                   1,
		"writ_calls_total{server=toy outcome=error}":                                                                1,
		"mcp_server_operation_duration_seconds{server=toy mcp_method_name=tools/call gen_ai_tool_name=delete_item}": 2,
		"mcp_client_operation_duration_seconds{server=toy mcp_method_name=tools/call gen_ai_tool_name=delete_item}": 1,
		"mcp_server_operation_duration_seconds{server=_OTHER mcp_method_name=tools/call gen_ai_tool_name=_OTHER}":   6,
		"writ_upstream_up{server=toy}":                                                                              1,
		"writ_upstream_calls_running{server=toy}":                                                                   0,
		"writ_approvals_waiting{}":                                                                                  0,
		"writ_evidence_limit_bytes{}":                                                                               1 << 30,
	} {
		if all[want] != n {
			t.Errorf("%s is %v, want %v", want, all[want], n)
		}
	}
	for _, some := range []string{"writ_evidence_bytes{}", "writ_sessions_loaded{}", "writ_store_appends_total{result=ok}"} {
		if all[some] <= 0 {
			t.Errorf("%s is %v", some, all[some])
		}
	}
	for _, not := range []string{secret, id, "principal", "kim", "value-", "argument-name", "item-17", "name-", "uncontracted"} {
		if strings.Contains(page, not) {
			t.Errorf("the page has %q", not)
		}
	}

	// Whoever waits is counted while he waits, and his answer once.
	leave := r.opts.Approvals.There()
	defer leave()
	waits := make(chan answer)
	go func() { waits <- w.call(ctx, "delete_item", `{"id":"value-4712"}`) }()
	qs, change := r.opts.Approvals.Open()
	for ; len(qs) == 0; qs, change = r.opts.Approvals.Open() {
		<-change
	}
	if _, all = scraped(t, r); all["writ_approvals_waiting{}"] != 1 {
		t.Error("nobody waits")
	}
	if _, err := r.opts.Approvals.Answer(qs[0].ID, approval.Answer{By: "principal-lee", Label: writ.User}); err != nil {
		t.Fatal(err)
	}
	<-waits
	if page, all = scraped(t, r); all["writ_approvals_waiting{}"] != 0 || all["writ_approvals_answered_total{answer=no}"] != 1 || strings.Contains(page, "lee") {
		t.Error(page)
	}
}

// TestMetricsOfADeadServer: it is known by its configured name, and is not there.
func TestMetricsOfADeadServer(t *testing.T) {
	up := newScripted(t, "toy", true)
	config := up.config(true)
	config.URL = "http://127.0.0.1:1/mcp"
	r := &rig{tb: t, store: onMaps(t), faulty: true}
	r.opts.Store, r.opts.Policy = r.store, policy(t, turnPolicy)
	r.opts.Servers = append(r.opts.Servers, config)
	r.start()
	t.Cleanup(r.stop)
	if err := r.gw.Settled(testContext(t)); err != nil {
		t.Fatal(err)
	}
	page, all := scraped(t, r)
	if v, known := all["writ_upstream_up{server=toy}"]; v != 0 || !known || strings.Contains(page, "127.0.0.1") {
		t.Error(page)
	}
}

// TestMetricsGrowWithThePolicy: a server that lists names without end adds no series.
func TestMetricsGrowWithThePolicy(t *testing.T) {
	ctx := testContext(t)
	up := newScripted(t, "toy", true)
	tools := itemTools[:len(itemTools)-2]
	for i := range 300 {
		tools += fmt.Sprintf(`,{"name":"minted_%d","inputSchema":{"type":"object"}}`, i)
	}
	up.list("tools/list", tools+"]}")
	r := newRig(t, onMaps(t), policy(t, turnPolicy), up.config(true))
	r.opts.Shadow = true // every one of them is listed, and passes
	r.restart()
	w := overHTTP(ctx, r, true, web{session: r.mint()})
	for i := range 300 {
		up.reply(itemList)
		w.call(ctx, fmt.Sprint("minted_", i), `{}`)
	}
	page, all := scraped(t, r)
	if all["mcp_client_operation_duration_seconds{server=toy mcp_method_name=tools/call gen_ai_tool_name=_OTHER}"] != 300 || strings.Contains(page, "minted") {
		t.Error(page)
	}
}
