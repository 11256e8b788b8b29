import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { WebhookError } from '../../../../src/index.ts'
import type { MediaInput } from '../../../../src/service/emulator/media/media.ts'
import { Studio, type StudioOptions } from '../../../../src/service/emulator/media/studio.ts'
import { Changes } from '../../../../src/service/emulator/shared/changes.ts'
import type { Payload } from '../../../../src/testing/payload.ts'
import { timers } from '../sending/targets.ts'

const second = 1_000_000_000n

/** Creates a studio that is closed after the test. Its clock advances by a second each time it is read. */
function studioWith(options: Partial<StudioOptions> = {}) {
  const emitted: Payload[] = []
  let now = BigInt(Date.UTC(2026, 2, 14)) * 1_000_000n
  const studio = new Studio({
    clock: () => {
      now += second
      return now
    },
    newId: randomUUID,
    timeScale: 0,
    userId: 'user-1',
    maxRecords: 100,
    changes: new Changes(),
    emit: (payload) => {
      emitted.push(payload)
      return [`sending-${emitted.length}`]
    },
    ...options,
  })
  onTestFinished(() => studio.close())
  return { studio, emitted }
}

/** Creates an `emit` that throws `overloaded` the given number of times after the given number of events. */
function overloadedAfter(events: number, times: number) {
  const emitted: Payload[] = []
  let left = times
  const emit = (payload: Payload) => {
    if (emitted.length === events && left-- > 0) throw new WebhookError('overloaded', 'no room')
    emitted.push(payload)
    return []
  }
  return { emitted, emit }
}

describe('a media item', () => {
  test('emits its first event immediately, and the others in order', async () => {
    const { studio, emitted } = studioWith()
    const media = studio.add({ title: 'Holiday.mp4', qualities: ['720p', '360p'], mediaType: 'audio' })
    expect(emitted.map(({ type }) => type)).toEqual(['file.received'])
    expect(media.timeline.map(({ type, quality, emittedAt }) => [type, quality, emittedAt])).toEqual([
      ['file.received', undefined, '2026-03-14T00:00:02Z'],
      ['encoding.started', undefined, undefined],
      ['partial.finished', '720p', undefined],
      ['partial.finished', '360p', undefined],
      ['encoding.finished', undefined, undefined],
    ])

    await studio.idle()
    expect(emitted.map(({ type, qualities, status }) => [type, qualities, status])).toEqual([
      ['file.received', '360p,720p', 'new'],
      ['encoding.started', '', 'transcoding'],
      ['partial.finished', '720p', ''],
      ['partial.finished', '360p', ''],
      ['encoding.finished', '360p,720p', 'done'],
    ])
    for (const payload of emitted) {
      expect(payload).toMatchObject({
        media_id: media.id,
        user_id: 'user-1',
        title: 'Holiday.mp4',
        media_type: 'audio',
      })
    }
    const after = studio.get(media.id)
    expect(after?.state).toBe('finished')
    expect(after?.timeline.map(({ emittedAt }) => emittedAt)).toEqual(emitted.map(({ emitted_at }) => emitted_at))
    expect(after?.timeline.map(({ sendingIds }) => sendingIds)).toEqual([1, 2, 3, 4, 5].map((n) => [`sending-${n}`]))
  })

  test('is an untitled video in two qualities by default', () => {
    expect(studioWith().studio.add()).toMatchObject({
      userId: 'user-1',
      title: 'Untitled.mp4',
      qualities: ['360p', '720p'],
      fails: false,
      mediaType: 'video',
      createdAt: new Date('2026-03-14T00:00:01Z'),
      state: 'encoding',
    })
  })

  test('that fails ends with encoding.failed', async () => {
    const { studio, emitted } = studioWith()
    const { id } = studio.add({ fails: true })
    await studio.idle()
    expect(emitted.at(-1)).toMatchObject({ type: 'encoding.failed', status: 'fail' })
    expect(studio.get(id)?.state).toBe('failed')
  })

  test('emits an event about every 2.7 s, here scaled', async () => {
    const moments: number[] = []
    const { studio } = studioWith({
      timeScale: 0.01,
      emit: () => {
        moments.push(performance.now())
        return []
      },
    })
    studio.add({ qualities: ['360p'] })
    await studio.idle()
    for (const [index, moment] of moments.slice(1).entries()) {
      expect(moment - (moments[index] ?? 0)).toBeGreaterThanOrEqual(26)
    }
  })

  test('notifies of each change', async () => {
    const changes = new Changes()
    const told: unknown[] = []
    changes.subscribe((change) => told.push(change))
    const { studio } = studioWith({ changes })
    const { id } = studio.add({ qualities: ['360p'] })
    await studio.idle()
    expect(told).toEqual(new Array(4).fill({ kind: 'media', id }))
  })

  test('emits an event later when there is no room, and loses none', async () => {
    const { emitted, emit } = overloadedAfter(2, 3)
    const { studio } = studioWith({ emit })
    const { id } = studio.add({ qualities: ['360p'] })
    await studio.idle()
    expect(emitted.map(({ type }) => type)).toEqual([
      'file.received',
      'encoding.started',
      'partial.finished',
      'encoding.finished',
    ])
    expect(studio.get(id)?.state).toBe('finished')
  })

  test('that finds no room retries twice a second at any time scale', () => {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    let attempts = 0
    const emit = () => {
      if (attempts++ > 0) throw new WebhookError('overloaded', 'no room')
      return []
    }
    studioWith({ emit, timeScale: 0 }).studio.add()
    vi.advanceTimersByTime(10_000)
    expect(attempts).toBeGreaterThanOrEqual(20)
    expect(attempts).toBeLessThanOrEqual(22)
  })

  test('is rejected without a trace when there is no room for its first event', () => {
    const { studio } = studioWith({ emit: overloadedAfter(0, 1).emit })
    expect(() => studio.add()).toThrow(expect.objectContaining({ code: 'overloaded' }))
    expect(studio.list()).toEqual([])
  })
})

describe('the properties of a media item', () => {
  test.each<[string, unknown]>([
    ['media.title', { title: 1 }],
    ['media.title', { title: 'x'.repeat(256) }],
    ['media.title', { title: 'half a \ud83d pair' }],
    ['media.qualities', { qualities: [] }],
    ['media.qualities', { qualities: '360p' }],
    ['media.qualities', { qualities: new Array(21).fill('360p') }],
    ['media.qualities.1', { qualities: ['360p', ''] }],
    ['media.qualities.0', { qualities: ['360p,720p'] }],
    ['media.qualities.0', { qualities: ['x'.repeat(33)] }],
    ['media.qualities.0', { qualities: [360] }],
    ['media.fails', { fails: 'yes' }],
    ['media.mediaType', { mediaType: '' }],
    ['media.mediaType', { mediaType: null }],
    ['media has no field quality', { quality: '360p' }],
    ['media must be an object', 'Holiday.mp4'],
    ['media must be an object', null],
  ])('are rejected because of %s: %j', (named, input) => {
    const { studio, emitted } = studioWith()
    expect(() => studio.add(input as MediaInput)).toThrow(
      expect.objectContaining({ code: 'invalid_option', message: expect.stringMatching(`^${named}`) }),
    )
    expect(emitted).toEqual([])
  })

  test('may be any words, and every media item emits all its events', async () => {
    const quality = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 8 }).filter((text) => !text.includes(','))
    const inputs = fc.record({
      title: fc.string({ unit: 'binary', maxLength: 50 }),
      qualities: fc.array(quality, { minLength: 1, maxLength: 20 }),
      fails: fc.boolean(),
    })
    await fc.assert(
      fc.asyncProperty(inputs, async (input) => {
        const { studio, emitted } = studioWith()
        studio.add(input)
        await studio.idle()
        expect(emitted).toHaveLength(input.qualities.length + (input.fails ? 2 : 3))
        const ascending = emitted.at(-1)?.qualities.split(',') ?? []
        expect(ascending.toSorted()).toEqual(input.qualities.toSorted())
      }),
      { numRuns: 30 },
    )
  })
})

describe('a studio', () => {
  test('lists its media items, newest first, and drops the oldest finished ones', async () => {
    const { studio } = studioWith({ maxRecords: 2 })
    const ids: string[] = []
    for (let i = 0; i < 4; i++) {
      ids.unshift(studio.add().id)
      await studio.idle()
    }
    expect(studio.list().map(({ id }) => id)).toEqual(ids.slice(0, 2))
    expect(studio.get(ids[3] ?? '')).toBeUndefined()
  })

  test('rejects more media than its limit', () => {
    const { studio } = studioWith({ maxRecords: 2, timeScale: 1 })
    studio.add()
    studio.add()
    expect(() => studio.add()).toThrow(
      expect.objectContaining({
        code: 'overloaded',
        message: 'too many unfinished media: the limit is 2',
      }),
    )
  })

  test('emits nothing after it is closed, and leaves no timer', async () => {
    // Other files of this process may have left some.
    const before = timers()
    const { studio, emitted } = studioWith({ timeScale: 1 })
    for (let i = 0; i < 50; i++) studio.add()
    const idle = studio.idle()
    expect(timers()).toBeGreaterThanOrEqual(50)
    studio.close()
    studio.close()
    await idle
    await studio.idle()
    expect(timers()).toBeLessThan(before + 10)
    expect(emitted).toHaveLength(50)
    expect(() => studio.add()).toThrow(expect.objectContaining({ code: 'closing' }))
  })
})
