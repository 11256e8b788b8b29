import { execFile } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { serveWebhook } from '../support/serve.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { accepted, examine, type Finding, handWritten, type Request } from './examined-receiver.ts'
import { finish } from './program.ts'

const examineOne = async (...parameters: Parameters<typeof handWritten>) =>
  examine(`${await serveWebhook(handWritten(...parameters))}?token=s3cret`)

const warningsOf = (findings: readonly Finding[]) =>
  findings.filter(({ verdict }) => verdict === 'warning').map(({ check }) => check)

describe('doctor, given a correct receiver of others', () => {
  test('finds nothing wrong if it answers a duplicate like a new event, in words that ours happens to use', async () => {
    const answer = (_: Request, rejection?: number) =>
      rejection === undefined ? ([200, '{"status":"accepted"}'] as const) : ([rejection, '{"status":"error"}'] as const)
    const { code, failed, findings } = await examineOne(answer)
    expect({ code, failed }).toEqual({ code: 0, failed: [] })
    const duplicates = findings.filter(({ check }) => check.includes('duplicate'))
    expect(duplicates).toHaveLength(2)
    expect(warningsOf(findings)).toEqual(['handles an event once'])
  })

  test('finds nothing wrong if it answers 202 to everything but the test delivery', async () => {
    let isFirst = true
    const { code, failed } = await examineOne((_, rejection) => {
      if (rejection !== undefined) return rejection
      const status = isFirst ? 200 : 202
      isFirst = false
      return status
    })
    expect({ code, failed }).toEqual({ code: 0, failed: [] })
  })

  test('only misses the 200 to the test delivery if it answers 202 to everything', async () => {
    const { code, failed, findings } = await examineOne((_, rejection = 202) => rejection)
    expect({ code, failed }).toEqual({ code: 1, failed: ['answers exactly 200 within 1 s'] })
    expect(findings[0]?.fix).toMatch(/^answer 200: for the test delivery, no other status counts as success/)
  })

  test('finds nothing wrong with 501 to a method that it does not have', async () => {
    const { code, failed } = await examineOne((_, rejection = 200) => (rejection === 405 ? 501 : rejection))
    expect({ code, failed }).toEqual({ code: 0, failed: [] })
  })

  test('tests duplicates with an event that it accepts, if it ignores one type and rejects another', async () => {
    const { code, failed, findings } = await examineOne(({ text }, rejection) => {
      if (rejection !== undefined) return rejection
      if (text.includes('encoding.started')) return [200, '{"status":"ignored"}']
      return text.includes('file.received') ? 422 : [200, '{"status":"ok"}']
    })
    expect({ code, failed }).toEqual({ code: 0, failed: [] })
    expect(warningsOf(findings)).toEqual(['handles an event once'])
  })

  test('warns that it did not check duplicates if it accepts no type', async () => {
    const { code, failed, findings } = await examineOne(({ text }, rejection) => {
      if (rejection !== undefined) return rejection
      return text.includes('encoding.started') ? [200, '{"status":"ignored"}'] : 422
    })
    expect({ code, failed }).toEqual({ code: 0, failed: [] })
    expect(findings.find(({ verdict }) => verdict === 'warning')).toMatchObject({
      check: 'handles an event once',
      reason: expect.stringMatching(
        /^not checked: every type of event is ignored or not acknowledged, for example: 422 in/,
      ),
    })
  })

  test('finds nothing wrong if it rejects a replayed signature and, with 400, an old one', async () => {
    const hmac = (text: string) => createHmac('sha256', 's3cret').update(text).digest('hex')
    const seen = new Set<string>()
    const listener = handWritten(
      ({ headers }, rejection) => {
        if (rejection !== undefined) return rejection
        if (Date.now() / 1_000 - Number(headers['x-time']) > 300) return 400
        const signature = headers['x-signature'] as string
        return seen.has(signature) ? 409 : seen.add(signature) && 200
      },
      ({ headers, text }) => headers['x-signature'] === hmac(`${headers['x-time']}.${text}`),
    )
    const flags = ['--header', 'x-signature', '--timestamp-header', 'x-time', '--secret', 's3cret']
    const { code, findings } = await examine(await serveWebhook(listener), '--verify', 'hmac-signature', ...flags)
    expect(code).toBe(0)
    expect(warningsOf(findings)).toEqual(['handles an event once'])
  })

  test('finds nothing wrong if it rejects a replayed signature, and a second passes before every delivery', async () => {
    let time = Date.now()
    const clock = vi.spyOn(Date, 'now').mockImplementation(() => (time += 1_000))
    onTestFinished(() => clock.mockRestore())
    const seen = new Set<string>()
    const listener = handWritten(
      ({ headers }, rejection) => {
        const signature = headers['x-signature'] as string
        return rejection ?? (seen.has(signature) ? 409 : seen.add(signature) && 200)
      },
      ({ headers, text }) =>
        headers['x-signature'] === createHmac('sha256', 's3cret').update(`${headers['x-time']}.${text}`).digest('hex'),
    )
    const flags = ['--header', 'x-signature', '--timestamp-header', 'x-time', '--secret', 's3cret']
    const { findings } = await examine(await serveWebhook(listener), '--verify', 'hmac-signature', ...flags)
    const ofDuplicates = findings.filter(({ check }) => check.includes('duplicate'))
    expect(ofDuplicates.map(({ verdict }) => verdict)).toEqual(['ok', 'ok'])
  })

  test('names NODE_EXTRA_CA_CERTS for a certificate that it does not trust', async () => {
    const folder = await temporaryFolder()
    const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
    const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1']
    const files = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', key, '-out', cert]
    await promisify(execFile)('openssl', ['req', '-x509', ...files, ...subject])
    const server = createServer({ key: await readFile(key), cert: await readFile(cert) }, handWritten(accepted))
    server.listen(0, '127.0.0.1')
    onTestFinished(() => void server.close())
    await once(server, 'listening')
    const { code, findings } = await examine(
      `https://127.0.0.1:${(server.address() as AddressInfo).port}/?token=s3cret`,
    )
    expect(code).toBe(1)
    expect(findings[0]).toMatchObject({
      reason: 'no answer: DEPTH_ZERO_SELF_SIGNED_CERT',
      fix: expect.stringContaining('set NODE_EXTRA_CA_CERTS'),
    })
  })
})

test('doctor prints no control character that the endpoint sent', async () => {
  let count = 0
  const url = await serveWebhook(
    handWritten((_, rejection) => {
      if (rejection !== undefined) return rejection
      return [
        200,
        JSON.stringify({ status: count++ % 2 === 0 ? 'accepted' : '\u001b[2J\nok      forged: all is well' }),
      ]
    }),
  )
  const { output } = await finish(['doctor', `${url}?token=s3cret`])
  expect(output).toContain('handles an event once')
  expect(output).not.toContain('\u001b')
  expect(output).not.toMatch(/^ok +forged/m)
})
