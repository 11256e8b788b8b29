import { bodyFile } from '../shared/body-file.ts'
import { defineCommand } from '../shared/command.ts'
import { required } from '../shared/flags.ts'
import { maskingHelp } from '../shared/mask.ts'
import { readScheme, schemeChoice, schemeFlags } from '../shared/schemes.ts'
import type { Screen } from '../shared/screen.ts'
import { receiverUrl, secretUrlHelp } from '../shared/secret-url.ts'
import { plain } from '../shared/text.ts'
import { createEndpoint, maskedEndpointUrl } from './doctor/endpoint.ts'
import { examine, maxRequests } from './doctor/examine.ts'
import type { Finding } from './doctor/finding.ts'

const styles = { ok: 'green', warning: 'yellow', failed: 'red', skipped: 'dim' } as const

export const doctor = defineCommand({
  name: 'doctor',
  summary: 'tests a running endpoint with good and bad deliveries, and says what to fix',
  details:
    `It sends test deliveries (media id 00000000-0000-0000-0000-000000000000) and bad ones: ` +
    `at most ${maxRequests} requests, to this URL only. It does not follow redirects. If the endpoint ignores encoding.started, ` +
    'it tests duplicates with another type. Test deliveries run only handlers with { tests: true }; without one, duplicates ' +
    'are not tested.\nWith --body it sends that sample of another sender instead, again and again. That is not a test ' +
    `delivery: your handlers run for real, once if the endpoint is right.\n${maskingHelp.replace(/\.$/, ', unless --in path is given.')}\n${secretUrlHelp}`,
  positionalFlag: 'url',
  flags: {
    url: required(receiverUrl('the endpoint; --url can be left out')),
    body: bodyFile('a JSON object as the sender sends it, if that is not the media service'),
    verify: schemeChoice('the scheme that the endpoint verifies'),
    ...schemeFlags,
  },
  json: 'print one JSON object: url, ok, requests, findings',
  exitCodes: { 0: 'no check failed; warnings do not count', 1: 'a check failed' },
  examples: [
    "doctor 'http://127.0.0.1:3000/webhooks/media?token=secret'",
    'doctor http://127.0.0.1:3000/webhooks/media --verify hmac-signature --header x-signature --secret s3cret',
    'doctor http://127.0.0.1:3000/webhooks/mux --body event.json --verify timestamped-signature --header mux-signature --secret s3cret',
    'doctor - < url.txt',
  ],
  async run({ values, given }, screen) {
    const [url = ''] = values.url.split('#', 1)
    const scheme = readScheme('--verify', values.verify, { values, given })
    const endpoint = createEndpoint(
      { url, scheme, open: values.verify === 'unverified', sample: values.body },
      screen.signal,
    )
    const findings: Finding[] = []
    for await (const finding of examine(endpoint)) {
      findings.push(finding)
      if (!values.json) printFinding(finding, screen)
    }
    const { requests } = endpoint
    const isFine = findings.every(({ verdict }) => verdict !== 'failed')
    if (values.json) screen.json({ url: maskedEndpointUrl(url, scheme), ok: isFine, requests, findings })
    else printSummary(findings, requests, screen)
    return isFine ? 0 : 1
  },
})

function printSummary(findings: readonly Finding[], requests: number, { print, paint }: Screen): void {
  const count = (verdict: Finding['verdict']) => findings.filter((each) => each.verdict === verdict).length
  const [warned, wrong] = [count('warning'), count('failed')]
  const verdict =
    wrong > 0
      ? paint('red', 'Something is wrong')
      : warned > 0
        ? paint('yellow', 'No check failed')
        : paint('green', 'All is well')
  print(
    `\n${verdict}: ${count('ok')} ok, ${warned} warned, ${wrong} failed; ${requests} request${requests === 1 ? '' : 's'}`,
  )
}

function printFinding({ check, verdict, reason, fix }: Finding, { print, paint }: Screen): void {
  // Reasons and fixes can quote the endpoint.
  print(`${paint(styles[verdict], verdict.padEnd(8))}${plain(`${check}: ${reason}`)}`)
  if (fix !== undefined) print(`${' '.repeat(8)}${paint('dim', 'fix:')} ${plain(fix)}`)
}
