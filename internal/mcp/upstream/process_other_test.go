//go:build !unix

package upstream_test

const envGateway = "WRIT_TEST_GATEWAY"

func gateway() {}
