import { Readable } from 'node:stream'
import express from 'express'
import { describe, expect, test } from 'vitest'
import { expressHandler } from '../../adapters/express.ts'
import { nodeHandler } from '../../adapters/node.ts'
import { maxRequests } from '../../src/cli/commands/doctor/examine.ts'
import {
  basicAuth,
  createReceiver,
  type Handler,
  headerToken,
  hmacSignature,
  lruStore,
  memoryInbox,
  type ReceiverOptions,
  standardWebhooks,
  unverified,
  urlToken,
  type Verifier,
} from '../../src/index.ts'
import { watchedReceiver } from '../adapters/receivers.ts'
import { type AdapterName, mounts } from '../support/mounts.ts'
import { serveWebhook } from '../support/serve.ts'
import { silent } from '../support/silent.ts'
import { accepted, examine, handWritten, type Request } from './examined-receiver.ts'
import { finish, start } from './program.ts'

const secret = 'a shared secret'
const standardSecret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'

/** Ways to verify, each with the flags that describe it to the command. */
const schemes: Record<string, { verify: Verifier; flags: string[]; query?: string }> = {
  'a token in the given URL': {
    verify: urlToken({ secret }),
    query: `?token=${encodeURIComponent(secret)}`,
    flags: [],
  },
  'url-token': { verify: urlToken({ secret }), flags: ['--verify', 'url-token', '--secret', secret] },
  'header-token': {
    verify: headerToken({ secret, header: 'x-token', prefix: 'Bearer ' }),
    flags: ['--verify', 'header-token', '--secret', secret, '--header', 'x-token', '--prefix', 'Bearer '],
  },
  'basic-auth': {
    verify: basicAuth({ username: 'media', password: secret }),
    flags: ['--verify', 'basic-auth', '--username', 'media', '--password', secret],
  },
  'hmac-signature': {
    verify: hmacSignature({ secret, header: 'x-signature', timestamp: { header: 'x-time' } }),
    flags: [
      '--verify',
      'hmac-signature',
      '--secret',
      secret,
      '--header',
      'x-signature',
      '--timestamp-header',
      'x-time',
    ],
  },
  'standard-webhooks': {
    verify: standardWebhooks({ secret: standardSecret }),
    flags: ['--verify', 'standard-webhooks', '--secret', standardSecret],
  },
}

/** Makes a receiver with a handler that asks for test deliveries. */
function testedReceiver(options: ReceiverOptions, handler: Handler = () => {}) {
  const watched = watchedReceiver({ ...options, handlers: {} })
  watched.receiver.on('encoding.started', handler, { tests: true })
  return watched
}

describe('doctor, given a receiver of this package', () => {
  test.each(Object.keys(mounts) as AdapterName[])('finds nothing wrong behind %s', async (name) => {
    const { receiver, handled } = testedReceiver({ verify: urlToken({ secret }) })
    const mounted = await mounts[name](receiver)
    const { code, failed, findings } = await examine(`${mounted.url}?token=${encodeURIComponent(secret)}`)
    await mounted.close()
    expect({ code, failed, handled }).toEqual({ code: 0, failed: [], handled: [] })
    expect(findings.every(({ verdict }) => verdict === 'ok')).toBe(true)
  })

  test.each(Object.keys(schemes))('finds nothing wrong with %s', async (name) => {
    const { verify, flags, query = '' } = schemes[name] as (typeof schemes)[string]
    const { receiver } = testedReceiver({ verify })
    const { code, failed, requests } = await examine(`${await serveWebhook(nodeHandler(receiver))}${query}`, ...flags)
    expect({ code, failed }).toEqual({ code: 0, failed: [] })
    expect(requests).toBeLessThanOrEqual(maxRequests)
  })

  test('makes at most as many requests as it says', async () => {
    // Maximum number of requests: four types are ignored, three credentials are checked, and duplicates are handled
    // again.
    const credentials = ['media:s3cret@', '&a=s3cret', '&b=s3cret']
    const isAuthorized = ({ url, headers }: Request) =>
      [`Basic ${btoa('media:s3cret')}`, 'a=s3cret', 'b=s3cret'].every((each) =>
        `${headers.authorization} ${url}`.includes(each),
      )
    let received = 0
    const listener = handWritten(({ text }, rejection) => {
      received += 1
      if (rejection !== undefined) return [rejection, '{"status":"error","code":"malformed","message":"bad"}']
      return [200, text.includes('encoding.failed') ? '{"status":"accepted"}' : '{"status":"ignored"}']
    }, isAuthorized)
    const [basic = '', ...query] = credentials
    const { requests } = await examine(
      `${(await serveWebhook(listener)).replace('//', `//${basic}`)}?c=5${query.join('')}`,
    )
    expect({ requests, received }).toEqual({ requests: maxRequests, received: maxRequests })
  })

  test('sends only test events to handlers', async () => {
    const events: boolean[] = []
    const { receiver } = watchedReceiver({ verify: unverified() })
    receiver.onAny(({ test }) => void events.push(test), { tests: true })
    await examine(await serveWebhook(nodeHandler(receiver)))
    expect(events.length).toBeGreaterThan(20)
    expect(events.every((isTest) => isTest)).toBe(true)
  })

  test('finds that an unverified endpoint accepts forgeries, names the fix, and only warns if that is on purpose', async () => {
    const { receiver } = testedReceiver({ verify: unverified() })
    const url = await serveWebhook(nodeHandler(receiver))
    const { code, failed, findings } = await examine(url)
    expect({ code, failed }).toEqual({ code: 1, failed: ['rejects a delivery without credentials'] })
    expect(findings.find(({ verdict }) => verdict === 'failed')?.fix).toContain('urlToken({ secret: process.env.')

    const meant = await examine(url, '--verify', 'unverified')
    expect({ code: meant.code, failed: meant.failed }).toEqual({ code: 0, failed: [] })
    expect(meant.findings.filter(({ verdict }) => verdict === 'warning')).toHaveLength(1)
  })

  test('tests duplicates with a type that has a handler', async () => {
    const types: string[] = []
    const { receiver } = watchedReceiver({ verify: urlToken({ secret }) })
    receiver.on('encoding.finished', ({ type, test }) => void types.push(`${type} ${test}`), { tests: true })
    const { failed, findings } = await examine(
      `${await serveWebhook(nodeHandler(receiver))}?token=${encodeURIComponent(secret)}`,
    )
    expect(failed).toEqual([])
    expect(findings.slice(1, 5)).toEqual([
      { check: 'acknowledges a duplicate', verdict: 'ok', reason: expect.stringMatching(/^200 in/) },
      {
        check: 'handles an event once when it comes in two deliveries',
        verdict: 'ok',
        reason: '1 answered as duplicate',
      },
      { check: 'acknowledges 5 concurrent duplicates', verdict: 'ok', reason: expect.stringMatching(/^200 in/) },
      {
        check: 'handles an event once when it comes in 5 concurrent deliveries',
        verdict: 'ok',
        reason: '4 answered as duplicate',
      },
    ])
    expect(types).toEqual(['encoding.finished true', 'encoding.finished true'])
  })

  test('warns that it did not check duplicates if no type has a handler', async () => {
    const { receiver } = watchedReceiver({ verify: urlToken({ secret }), handlers: {} })
    const { code, findings } = await examine(
      `${await serveWebhook(nodeHandler(receiver))}?token=${encodeURIComponent(secret)}`,
    )
    expect(code).toBe(0)
    expect(findings.filter(({ verdict, check }) => verdict !== 'ok' || check.includes('an event once'))).toEqual([
      {
        check: 'handles an event once',
        verdict: 'warning',
        reason: expect.stringMatching(/^not checked: no handler is registered for file\.received, .*encoding\.failed$/),
        fix: 'register a handler for one of them, or with onAny, and run the check again',
      },
    ])
  })

  test('runs no handler that does not ask for test deliveries, and says what it did not check', async () => {
    const { receiver, handled } = watchedReceiver({ verify: urlToken({ secret }) })
    const { code, findings } = await examine(
      `${await serveWebhook(nodeHandler(receiver))}?token=${encodeURIComponent(secret)}`,
    )
    expect({ code, handled }).toEqual({ code: 0, handled: [] })
    expect(findings.filter(({ verdict, check }) => verdict !== 'ok' || check.includes('an event once'))).toEqual([
      {
        check: 'handles an event once',
        verdict: 'skipped',
        reason: 'no handler asks for test deliveries',
        fix: 'give a handler the option { tests: true }, and run the check again',
      },
    ])
  })

  test('asks about the token in the URL first if a genuine delivery is rejected', async () => {
    const url = await serveWebhook(nodeHandler(testedReceiver({ verify: urlToken({ secret }) }).receiver))
    const fixAt = async (target: string) => (await examine(target)).findings[0]?.fix
    expect(await fixAt(`${url}?token=wrong`)).toMatch(/^is the token in the URL right\? .* --verify <scheme>/)
    expect(await fixAt(`${url}/0f8fad5b-d9cb-469f-a165-70867728950e`)).toMatch(/^is the token in the URL/)
    expect(await fixAt(url.replace('//', '//media:wrong@'))).toMatch(/^are the user and password in the URL right/)
    expect(await fixAt(url)).toMatch(/^put the token into the URL/)
  })

  test('finds nothing wrong with two processes that share a store while one of them still handles the event', async () => {
    const store = lruStore()
    let release = () => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    const processes = [1, 2].map(() => {
      const inbox = memoryInbox({ store })
      return nodeHandler(testedReceiver({ verify: urlToken({ secret }), inbox }, () => held).receiver)
    })
    let turn = 0
    const url = await serveWebhook((request, response) => processes[turn++ % 2]?.(request, response))
    const { code, failed, findings } = await examine(`${url}?token=${encodeURIComponent(secret)}`)
    release()
    expect({ code, failed }).toEqual({ code: 0, failed: [] })
    const duplicates = findings.filter(({ check }) => check.includes('an event once'))
    expect(duplicates.map(({ reason }) => reason)).toContainEqual(expect.stringMatching(/503 while another process/))
  })

  test('only warns about invalid UTF-8 that express.json() replaces before the receiver sees it', async () => {
    const { receiver } = testedReceiver({ verify: urlToken({ secret }) })
    // In this environment Express does not log what it rejects.
    const app = express().set('env', 'test').use(express.json()).use(expressHandler(receiver))
    const { code, findings } = await examine(`${await serveWebhook(app)}?token=${encodeURIComponent(secret)}`)
    expect(code).toBe(0)
    expect(findings.filter(({ verdict }) => verdict !== 'ok')).toEqual([
      expect.objectContaining({ check: 'rejects a body that is not UTF-8', verdict: 'warning' }),
    ])
  })

  test('names the flags for a secret at the end of the path, which could also be a name', async () => {
    const token = 'a1b2c3d4e5f6a7b8c9d0'
    const { receiver } = testedReceiver({ verify: urlToken({ secret: token, in: 'path' }) })
    const url = await serveWebhook(nodeHandler(receiver))
    const { failed, findings } = await examine(`${url}/${token}`)
    expect(failed).toEqual(['rejects a delivery without credentials'])
    expect(findings.find(({ verdict }) => verdict === 'failed')?.fix).toContain('give --verify url-token --in path')
    expect((await examine(url, '--verify', 'url-token', '--in', 'path', '--secret', token)).failed).toEqual([])
  })

  test("finds nothing wrong with ack: 'handled'", async () => {
    const { receiver } = testedReceiver({ verify: urlToken({ secret }), ack: 'handled' })
    const { failed } = await examine(
      await serveWebhook(nodeHandler(receiver)),
      '--verify',
      'url-token',
      '--secret',
      secret,
    )
    expect(failed).toEqual([])
  })
})

describe('doctor, given a hand-written receiver', () => {
  const examineOne = async (answer: Parameters<typeof handWritten>[0]) =>
    examine(`${await serveWebhook(handWritten(answer))}?token=s3cret`)

  test('finds no fault in a correct one, and warns that its answers do not show whether an event was handled once', async () => {
    const { code, failed, findings } = await examineOne(accepted)
    expect({ code, failed }).toEqual({ code: 0, failed: [] })
    expect(findings.filter(({ verdict }) => verdict === 'warning')).toEqual([
      {
        check: 'handles an event once',
        verdict: 'warning',
        reason: 'unknown: the answers do not show it',
        fix: expect.stringContaining('that your handlers ran once'),
      },
    ])
    const duplicates = findings.filter(({ check }) => check.includes('duplicate'))
    expect(duplicates.map(({ verdict, reason }) => [verdict, reason])).toEqual([
      ['ok', expect.stringMatching(/^200 in \d+ ms$/)],
      ['ok', expect.stringMatching(/^200 in \d+ ms$/)],
    ])
  })

  const seen = new Set<string>()

  test.each<[what: string, answer: Parameters<typeof handWritten>[0], checks: (string | RegExp)[]]>([
    ['204', (_, rejection = 204) => rejection, [/exactly 200/]],
    [
      'forged deliveries',
      (_, rejection = 200) => (rejection === 401 ? 200 : rejection),
      [/with a wrong 'token' in its URL/],
    ],
    [
      'any JSON',
      (_, rejection = 200) => (rejection === 400 ? 200 : rejection),
      [/not JSON/, /empty/, /not an object/, /media_id/],
    ],
    [
      '500 on bad JSON',
      (_, rejection = 200) => (rejection === 400 ? 500 : rejection),
      [/not JSON/, /empty/, /UTF-8/, /not an object/, /media_id/],
    ],
    ['GET', ({ method }, rejection = 200) => (method === 'GET' ? 200 : rejection), [/a GET/]],
    ['any method', (_, rejection = 200) => (rejection === 405 ? 200 : rejection), [/a GET/, /a PUT/]],
    [
      'any size',
      (_, rejection = 200) => (rejection === 413 ? 200 : rejection),
      [/1 MiB/, /1 MiB without Content-Length/],
    ],
    [
      'a redirect for a forged delivery',
      (_, rejection = 200) => (rejection === 401 ? 302 : rejection),
      [/with a wrong 'token' in its URL/],
    ],
    [
      '409 to a duplicate',
      ({ text }, rejection) => {
        if (rejection !== undefined) return rejection
        return seen.has(text) ? 409 : seen.add(text) && 200
      },
      [/a duplicate/, /concurrent duplicates/],
    ],
  ])('finds the fault: %s', async (_, answer, checks) => {
    const { code, failed } = await examineOne(answer)
    expect(code).toBe(1)
    expect(failed).toEqual(checks.map((check) => expect.stringMatching(check)))
  })

  test('finds that duplicates are handled twice, if the answers are those of a receiver of this package', async () => {
    const { failed, findings } = await examineOne((_, rejection) =>
      rejection === undefined
        ? [200, '{"status":"accepted"}']
        : [rejection, JSON.stringify({ status: 'error', code: rejection === 400 ? 'malformed' : 'unauthorized' })],
    )
    expect(failed).toEqual([expect.stringMatching(/in two deliveries/), expect.stringMatching(/5 concurrent/)])
    expect(findings.find(({ verdict }) => verdict === 'failed')?.fix).toContain('claim each event by its key')
  })

  test('stops at a redirect, and does not follow it', async () => {
    const urls: string[] = []
    const { code, findings, output } = await examineOne(({ url }) => {
      urls.push(url)
      return 301
    })
    expect(code).toBe(1)
    expect(urls).toHaveLength(1)
    expect(findings.map(({ verdict }) => verdict)).toEqual(['failed', 'skipped'])
    expect(findings[0]?.reason).toMatch(/^301 to \/elsewhere\?token=…/)
    expect(output).not.toContain('s3cret')
  })

  test('only warns about an endpoint that takes any content type', async () => {
    const { code, failed, findings } = await examineOne((_, rejection = 200) => (rejection === 415 ? 200 : rejection))
    expect({ code, failed }).toEqual({ code: 0, failed: [] })
    const [warning] = findings.filter(({ check }) => check.includes('text/plain'))
    expect(warning).toMatchObject({
      verdict: 'warning',
      reason: expect.stringMatching(/^200 in \d+ ms, which acknowledges it$/),
    })
  })

  test('warns that an answer takes more than a second', async () => {
    let isFirst = true
    const { code, findings } = await examineOne(async (request, rejection) => {
      if (isFirst) await new Promise((resolve) => setTimeout(resolve, 1_050))
      isFirst = false
      return accepted(request, rejection)
    })
    expect(code).toBe(0)
    expect(findings[0]).toEqual({
      check: 'answers exactly 200 within 1 s',
      verdict: 'warning',
      reason: expect.stringMatching(/^200 in 1\d{3} ms$/),
      fix: expect.stringMatching(/^acknowledge first .*: the service waits 3 s .* 1 s/),
    })
  })

  test('warns that every answer in a burst takes more than a second', async () => {
    // Slow are the first delivery, and those after the last bad one.
    let isSlow = true
    let wasTextPlain = false
    const { failed, findings } = await examineOne(async (request, rejection) => {
      if (rejection === undefined && isSlow) await new Promise((resolve) => setTimeout(resolve, 1_050))
      if (!wasTextPlain) isSlow = wasTextPlain = request.type === 'text/plain'
      return accepted(request, rejection)
    })
    expect(failed).toEqual([])
    const slow = findings.filter(({ verdict, reason }) => verdict === 'warning' && !reason.startsWith('unknown'))
    const checks = [/exactly 200/, /^acknowledges 20 concurrent events/, /^still acknowledges/]
    expect(slow.map(({ check }) => check)).toEqual(checks.map((check) => expect.stringMatching(check)))
    const burst = findings.find(({ check }) => check.startsWith('acknowledges 20 concurrent'))
    expect(burst?.reason).toMatch(/^20 took longer, the slowest in 1\d{3} ms$/)
  })

  test('says that the port does not speak TLS if an https URL leads to an http port', async () => {
    const url = await serveWebhook(handWritten(accepted))
    const { code, findings } = await examine(url.replace('http:', 'https:'))
    expect(code).toBe(1)
    expect(findings[0]).toMatchObject({
      reason: 'no answer: the port does not speak TLS',
      fix: expect.stringContaining('use http:// in the URL'),
    })
  })

  test('prints no secret in the path of its URL or of a redirect', async () => {
    const url = await serveWebhook(
      (_, response) => void response.writeHead(301, { location: '/moved/s3cret/s3cret' }).end(),
    )
    const flags = ['--verify', 'url-token', '--in', 'path', '--secret', 's3cret']
    const { output } = await examine(`${url}/s3cret`, ...flags)
    expect(output).toContain('301 to /moved/…/…')
    expect(output).not.toContain('s3cret')
    // A secret other than the given one is also masked.
    expect((await examine(`${url}/old-one`, ...flags)).output).not.toContain('old-one')
  })

  test('finds that a delivery gets no answer within the time limit of the service', async () => {
    const { code, failed, findings } = await examineOne((request, rejection) =>
      request.text === '' && request.method === 'POST' ? new Promise<never>(() => {}) : accepted(request, rejection),
    )
    expect(code).toBe(1)
    expect(failed[0]).toBe('rejects an empty body')
    expect(findings.find(({ verdict }) => verdict === 'failed')?.reason).toBe('no answer within 3 s')
  })

  test('finds an endpoint that crashes', async () => {
    let isBroken = false
    const { failed } = await examine(
      `${await serveWebhook((request, response) => {
        isBroken ||= Number(request.headers['content-length']) > 65_536
        if (isBroken) request.socket.destroy()
        else handWritten(accepted)(request, response)
      })}?token=s3cret`,
    )
    expect(failed[0]).toMatch(/1 MiB/)
    expect(failed.at(-1)).toMatch(/still acknowledges/)
  })

  test('says what to try if the endpoint wants a signature', async () => {
    const receiver = createReceiver({ verify: urlToken({ secret }), logger: silent })
    const url = await serveWebhook(nodeHandler(receiver))
    expect((await examine(url)).findings[0]?.fix).toContain('--verify')
    const wrong = await examine(url, '--verify', 'url-token', '--secret', 'another one')
    expect(wrong.findings[0]?.fix).toContain('is this the right secret')
    expect(wrong.output).not.toContain('another one')
  })
})

describe('doctor on the command line', () => {
  test('prints a line for each finding, and no secret', async () => {
    const { receiver } = testedReceiver({ verify: urlToken({ secret }) })
    const url = await serveWebhook(nodeHandler(receiver))
    const { code, output } = await finish(['doctor', `${url}?token=${encodeURIComponent(secret)}`])
    expect(code).toBe(0)
    expect(output).toMatch(/^ok {6}answers exactly 200 within 1 s: 200 in \d+ ms\n/)
    expect(output).toMatch(/\nAll is well: \d+ ok, 0 warned, 0 failed; \d+ requests\n$/)
    expect(output).not.toContain('shared')
  })

  test('also takes the URL from the environment or from standard input, and says so in its help', async () => {
    const { receiver } = testedReceiver({ verify: urlToken({ secret: 's3cret' }) })
    const url = `${await serveWebhook(nodeHandler(receiver))}?token=s3cret`
    const results = [
      await finish(['doctor'], { MEDIA_WEBHOOKS_URL: url }),
      await finish(['doctor', '-'], {}, Readable.from([`${url}\n`])),
      await finish(['doctor', '--url', url]),
    ]
    for (const { code, output, errors } of results) {
      expect({ code, errors }).toEqual({ code: 0, errors: '' })
      expect(output).not.toContain('s3cret')
    }
    const { output } = await finish(['doctor', '--help'])
    expect(output.replace(/\s+/g, ' ')).toContain('or MEDIA_WEBHOOKS_URL, or - for standard input')
  })

  test('says that no check failed, instead of that all is well, if it warned', async () => {
    const { receiver } = testedReceiver({ verify: unverified() })
    const { code, output } = await finish([
      'doctor',
      await serveWebhook(nodeHandler(receiver)),
      '--verify',
      'unverified',
    ])
    expect(code).toBe(0)
    expect(output).toMatch(/\nNo check failed: \d+ ok, 1 warned, 0 failed; \d+ requests\n$/)
  })

  test('fails with one line if nothing listens', async () => {
    const { code, output } = await finish(['doctor', 'http://127.0.0.1:1/webhooks/media'])
    expect(code).toBe(1)
    expect(output).toContain('ECONNREFUSED')
  })

  test('exits with 130 when it is interrupted', async () => {
    const url = await serveWebhook(() => {})
    const program = start(['doctor', url])
    program.interrupt()
    expect(await program.code).toBe(130)
    expect(program.errors()).toBe('')
  })
})

test('a body that another parser consumed is recognised by its code, with the fix for each framework', async () => {
  const { receiver } = watchedReceiver({ verify: hmacSignature({ secret, header: 'x-signature' }) })
  const app = express().use(express.json())
  app.post('/webhooks/media', expressHandler(receiver))
  const scheme = schemes['hmac-signature']?.flags.slice(0, 6) ?? []
  const { findings } = await examine(await serveWebhook(app), ...scheme)
  expect(findings[0]).toMatchObject({
    verdict: 'failed',
    fix: expect.stringMatching(/before express\.json\(\).+rawBody: true.+bodyParser: false.+c\.req\.text\(\)/),
  })
})
