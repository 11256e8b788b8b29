// Prints what vitest's JSON report counted, on one line. Fails when a test failed or none ran.
import { readFileSync } from 'node:fs'

const { numPassedTests, numPendingTests, numTodoTests, numFailedTests, testResults } = JSON.parse(
  readFileSync(process.argv[2], 'utf8'),
)
// A file that could not be loaded has failed without a test that says so.
const unloaded = testResults.filter(
  ({ status, assertionResults }) => status === 'failed' && assertionResults.every((each) => each.status !== 'failed'),
).length
const failed = numFailedTests + unloaded
const skipped = numPendingTests + numTodoTests
console.log(`${numPassedTests} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`)
process.exitCode = failed > 0 || numPassedTests === 0 ? 1 : 0
