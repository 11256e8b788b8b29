import { describe, expect, test } from 'vitest'
import { awaitedNames, publishedNames, toHandler } from '../../../src/inbox/postgres/claim/awaited.ts'

describe('the names of handlers', () => {
  test('are published with the types, and read again', () => {
    const handlers = [{ name: 'every' }, { name: 'a "b"\0', types: ['encoding.started', 'encoding.failed'] }]
    const published = publishedNames(handlers)
    expect(published.map(toHandler)).toEqual([
      { name: 'every' },
      { name: 'a "b"\0', types: ['encoding.started'] },
      { name: 'a "b"\0', types: ['encoding.failed'] },
    ])
    expect(published.join('')).not.toContain('\0')
  })

  test('meet those that an event awaits if they are for its type', () => {
    const meets = (types: readonly string[] | undefined) =>
      publishedNames([{ name: 'a', types }]).some((name) =>
        awaitedNames(['b', 'a'], 'encoding.started', []).includes(name),
      )
    expect([undefined, ['encoding.failed', 'encoding.started'], ['encoding.failed'], []].map(meets)).toEqual([
      ...[true, true, false, false],
    ])
  })

  test('are not awaited by an event whose process has them, and can do nothing with it', () => {
    const own = publishedNames([{ name: 'a' }, { name: 'b', types: ['encoding.failed'] }])
    expect(awaitedNames(['a', 'b'], 'encoding.started', own)).toEqual(['"b"', '["b","encoding.started"]'])
  })
})
