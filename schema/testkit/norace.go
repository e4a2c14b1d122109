//go:build !race

package testkit

// raceDetector tells whether the binary has the race detector.
const raceDetector = false
