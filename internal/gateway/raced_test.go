//go:build race

package gateway

// raced says that the race detector is on: what takes long is done less often.
const raced = true
