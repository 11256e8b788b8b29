// Prints what all the JSON reports of vitest in a folder counted, on one line, after the tests that
// needed a second try. Fails when a test failed or none ran.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const folder = process.argv[2]
const sum = { passed: 0, failed: 0, skipped: 0 }
for (const name of readdirSync(folder)) {
  const report = JSON.parse(readFileSync(join(folder, name), 'utf8'))
  // A file that could not be loaded has failed without a test that says so.
  const unloaded = report.testResults.filter(
    ({ status, assertionResults }) => status === 'failed' && assertionResults.every((each) => each.status !== 'failed'),
  ).length
  sum.passed += report.numPassedTests
  sum.failed += report.numFailedTests + unloaded
  sum.skipped += report.numPendingTests + report.numTodoTests
  for (const { status, fullName, failureMessages } of report.testResults.flatMap((file) => file.assertionResults))
    if (status === 'passed' && failureMessages.length > 0)
      console.log(`passed at its second try: ${fullName}\n  ${failureMessages[0].split('\n', 3).join('\n  ')}`)
}
console.log(`${sum.passed} passed, ${sum.failed} failed${sum.skipped > 0 ? `, ${sum.skipped} skipped` : ''}`)
process.exitCode = sum.failed > 0 || sum.passed === 0 ? 1 : 0
