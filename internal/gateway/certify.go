package gateway

import (
	"fmt"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/certificate"
	"github.com/writ-project/writ/internal/strictjson"
)

// Certify has the certificate of every accepted act checked too, by the verifier that
// shares no matching code with the gate. It is for who checks a log: a restart decides
// again, and that is enough for it.
func (r *Replayer) Certify() { r.certifies = true }

// certify tells the verifier of an allowed call. What is recorded of it, byte for byte, is that
// record.
func (r *Replayer) certify(rec *audit.Record, in *gate.Input, d *gate.Record, w *ruleset) error {
	if r.certificates == nil {
		return nil
	}
	err := r.certificates.Call(certificate.Call{Number: rec.N, Policy: w.policy, Catalogue: w.catalogue, Record: d,
		Arguments: in.Call.Arguments, Answers: in.Call.Answers, Time: rec.Time})
	if err != nil {
		return fmt.Errorf("%w (n %d): %w", ErrReplay, rec.N, err)
	}
	if certificate.Accepted(d) {
		r.Certificates++
	}
	return nil
}

// certifyResult tells the verifier of a result, or that it vouches for nothing.
func (r *Replayer) certifyResult(rec *audit.Record, data *resultData, result strictjson.Value) error {
	switch {
	case r.certificates == nil:
	case !data.Admissible:
		r.certificates.End(data.Decision)
	default:
		err := result.Within(strictjson.Result)
		if err == nil {
			err = r.certificates.Result(certificate.Result{Call: data.Decision, Evidence: data.Evidence, Time: rec.Time, Value: result,
				Recalled: data.Recalled, Places: data.Places != nil})
		}
		if err != nil {
			return fmt.Errorf("%w: the result's worth (n %d): %w", ErrReplay, rec.N, err)
		}
	}
	return nil
}
