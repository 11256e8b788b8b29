import { describe, expect, test } from 'vitest'
import { envelopeBody, flatBody, type Payload, timestamp } from '../../src/testing/payload.ts'

const payload: Payload = {
  user_id: 'user-1',
  media_type: 'video',
  status: 'done',
  title: 'Holiday.mp4',
  qualities: '360p,720p',
  media_id: '5a0f8c1e-3a52-4b7b-9f0e-0c7f2f6f6a11',
  emitted_at: '2026-03-14T09:26:53.589793Z',
  type: 'encoding.finished',
}

const titleOf = (title: string) => /"title":(.*),"status"/s.exec(flatBody({ ...payload, title }))?.[1]

describe('the flat body', () => {
  test('has the keys in the order of the service, no spaces and no newline at its end', () => {
    expect(flatBody(payload)).toBe(
      '{"type":"encoding.finished","emitted_at":"2026-03-14T09:26:53.589793Z",' +
        '"media_id":"5a0f8c1e-3a52-4b7b-9f0e-0c7f2f6f6a11","qualities":"360p,720p","title":"Holiday.mp4",' +
        '"status":"done","media_type":"video","user_id":"user-1"}',
    )
  })

  test('writes a field that does not apply as the empty string', () => {
    expect(flatBody({ ...payload, qualities: '', status: '' })).toContain(
      '"qualities":"","title":"Holiday.mp4","status":""',
    )
  })

  test.each([
    ['HTML', `<b>"Tom" & 'Jerry'</b>\\`, `"\\u003cb\\u003e\\"Tom\\" \\u0026 'Jerry'\\u003c/b\\u003e\\\\"`],
    ['line separators of JavaScript', 'a\u2028b\u2029c', '"a\\u2028b\\u2029c"'],
    ['short control characters', '\b\f\n\r\t', '"\\b\\f\\n\\r\\t"'],
    ['other control characters', '\u0000\u000b\u001f', '"\\u0000\\u000b\\u001f"'],
    ['a lone surrogate', 'a\ud83db\udfac', '"a\\ufffdb\\ufffd"'],
  ])('escapes %s as Go does', (_, title, json) => {
    expect(titleOf(title)).toBe(json)
  })

  test.each(['Ferien am Müggelsee.mp4', '映画 🎬', '\u007f', '\ufffd', 'a/b'])('leaves %j as it is', (title) => {
    expect(titleOf(title)).toBe(`"${title}"`)
  })

  test('lets a JSON parser read back any well-formed string', () => {
    const title = Array.from({ length: 0x800 }, (_, code) => String.fromCharCode(code)).join('')
    expect(JSON.parse(flatBody({ ...payload, title }))).toEqual({ ...payload, title })
  })
})

test('the envelope has the event beside its data, with the media as videoId', () => {
  expect(envelopeBody({ ...payload, title: 'R&D' })).toBe(
    '{"event":"encoding.finished","data":{"videoId":"5a0f8c1e-3a52-4b7b-9f0e-0c7f2f6f6a11",' +
      '"emittedAt":"2026-03-14T09:26:53.589793Z","qualities":"360p,720p","title":"R\\u0026D",' +
      '"status":"done","mediaType":"video","userId":"user-1"}}',
  )
})

describe('a timestamp', () => {
  const second = BigInt(Date.UTC(2026, 2, 14, 9, 26, 53)) * 1_000_000n

  test.each([
    [0n, ''],
    [500_000_000n, '.5'],
    [120_000_000n, '.12'],
    [1_000_000n, '.001'],
    [589_793_000n, '.589793'],
    [1n, '.000000001'],
    [999_999_999n, '.999999999'],
  ])('that is %d ns past the second ends in "%s"', (nanoseconds, fraction) => {
    expect(timestamp(second + nanoseconds)).toBe(`2026-03-14T09:26:53${fraction}Z`)
  })
})
