import { expect, test } from 'vitest'
import { testPayload } from '../../../../src/service/emulator/media/lifecycle.ts'
import { lifecycle, type UploadedMedia } from './lifecycle-payloads.ts'

const media: UploadedMedia = {
  id: 'media-1',
  userId: 'user-1',
  title: 'Holiday.mp4',
  qualities: ['720p', '360p', '1080p'],
  receivedAt: BigInt(Date.UTC(2026, 2, 14)) * 1_000_000n,
}

const words = (of: UploadedMedia) => lifecycle(of).map(({ type, qualities, status }) => [type, qualities, status])

test('the events of a media item go from its upload through each finished quality to the end of its encoding', () => {
  expect(words(media)).toEqual([
    ['file.received', '360p,720p,1080p', 'new'],
    ['encoding.started', '', 'transcoding'],
    ['partial.finished', '720p', ''],
    ['partial.finished', '360p', ''],
    ['partial.finished', '1080p', ''],
    ['encoding.finished', '360p,720p,1080p', 'done'],
  ])
})

test('a media item that fails does so at its last quality', () => {
  expect(words({ ...media, fails: true }).slice(2)).toEqual([
    ['partial.finished', '720p', ''],
    ['partial.finished', '360p', ''],
    ['encoding.failed', '360p,720p,1080p', 'fail'],
  ])
})

test('each event is emitted after the previous one', () => {
  const moments = lifecycle(media).map(({ emitted_at }) => emitted_at)
  expect(moments[0]).toBe('2026-03-14T00:00:00Z')
  expect(moments[1]).toBe('2026-03-14T00:00:02.716057313Z')
  expect(moments.toSorted()).toEqual(moments)
})

test('the test delivery has the nil media and no status', () => {
  expect(testPayload('user-1', media.receivedAt)).toEqual({
    type: 'encoding.started',
    emitted_at: '2026-03-14T00:00:00Z',
    media_id: '00000000-0000-0000-0000-000000000000',
    qualities: '720p',
    title: 'Test.mp4',
    status: '',
    media_type: 'video',
    user_id: 'user-1',
  })
})
