// The bodies of the services of docs/recipes.md, from their own pages unless a comment names another source. What they cut off
// there with `...` is left out.

export const bunny = `{
	"VideoLibraryId": 133,
	"VideoGuid": "657bb740-a71b-4529-a012-528021c31a92",
	"Status": 3
}`

/** The body and the secret whose signature api.video publishes. */
export const apiVideo = {
  secret: 'sig_sec_0000000000000000000000',
  body: '{"type":"video.encoding.quality.completed","emittedAt":"2021-01-29T15:46:25.217Z","videoId":"vi0000000000000000000000","liveStreamId":"li0000000000000000000000","encoding":"hls","quality":"720p"}',
  signature: '27a77d3a7fc626854886b5dbfae4e32c8b0170c1ea1b714c91ba77f1e7774e8c',
}

/** What MediaConvert tells EventBridge. */
export const mediaConvert = `{
    "version": "0",
    "id": "1234abcd-12ab-34cd-56ef-1234567890ab",
    "detail-type": "MediaConvert Job State Change",
    "source": "aws.mediaconvert",
    "account": "111122223333",
    "time": "2018-01-07T23:35:20Z",
    "region": "us-west-2",
    "resources": ["arn:aws:mediaconvert:us-west-2:111122223333:jobs/1515368087458-qnoxtd"],
    "detail": {
        "timestamp": 1515368120764,
        "accountId": "111122223333",
        "queue": "arn:aws:mediaconvert:us-west-2:111122223333:queues/Default",
        "jobId": "1515368087458-qnoxtd",
        "status": "ERROR",
        "errorCode": 1040,
        "errorMessage": "Example error message",
        "userMetadata": {}
    }
}`

/** AWS cuts it off with `...`, and has `000000` for the code of a warning, which is no JSON. */
export const mediaConvertComplete = `{
    "version": "0",
    "id": "1234abcd-12ab-34cd-56ef-1234567890ab",
    "detail-type": "MediaConvert Job State Change",
    "source": "aws.mediaconvert",
    "account": "111122223333",
    "time": "2022-12-19T19:07:12Z",
    "region": "us-west-2",
    "resources": [
        "arn:aws:mediaconvert:us-west-2::jobs/1671476818694-phptj0"
    ],
    "detail": {
        "timestamp": 1671476832124,
        "accountId": "111122223333",
        "queue": "arn:aws:mediaconvert:us-west-2:111122223333:queues/Default",
        "jobId": "1671476818694-phptj0",
        "status": "COMPLETE",
        "userMetadata": {},
        "warnings": [
            {
                "code": 0,
                "count": 1
            }
        ],
        "outputGroupDetails": [
            {
                "outputDetails": [
                    {
                        "outputFilePaths": [
                            "s3://amzn-s3-demo-bucket/file/file.mp4"
                        ],
                        "durationInMs": 30041,
                        "videoDetails": { "widthInPx": 1920, "heightInPx": 1080, "qvbrAvgQuality": 7.38 }
                    }
                ]
            }
        ]
    }
}`

const topicArn = 'arn:aws:sns:us-west-2:123456789012:MyTopic'

/** The messages of SNS, without their signatures. */
export const sns = {
  topicArn,
  notification: {
    Type: 'Notification',
    MessageId: '22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324',
    TopicArn: topicArn,
    Message: mediaConvert,
    Timestamp: '2012-05-02T00:54:06.655Z',
    SignatureVersion: '1',
    SigningCertURL:
      'https://sns.us-west-2.amazonaws.com/SimpleNotificationService-f3ecfb7224c7233fe7bb5f59f96de52f.pem',
    UnsubscribeURL: `https://sns.us-west-2.amazonaws.com/?Action=Unsubscribe&SubscriptionArn=${topicArn}:c9135db0`,
  },
  confirmation: {
    Type: 'SubscriptionConfirmation',
    MessageId: '165545c9-2a5c-472c-8df2-7ff2be2b3b1b',
    Token: '2336412f37',
    TopicArn: topicArn,
    Message:
      `You have chosen to subscribe to the topic ${topicArn}.\n` +
      'To confirm the subscription, visit the SubscribeURL included in this message.',
    SubscribeURL: `https://sns.us-west-2.amazonaws.com/?Action=ConfirmSubscription&TopicArn=${topicArn}&Token=2336412f37`,
    Timestamp: '2012-04-26T20:45:04.751Z',
    SignatureVersion: '1',
    SigningCertURL:
      'https://sns.us-west-2.amazonaws.com/SimpleNotificationService-f3ecfb7224c7233fe7bb5f59f96de52f.pem',
  },
} as const

/** As a user captured it: Bitmovin publishes none. */
export const bitmovin = `{
  "id": "fb47150d-af6f-4ea5-b113-3a03a312d0eb",
  "eventId": "433a5b9c-9fa2-47ed-bc10-dfe6e2d495eb",
  "createdAt": "2024-03-29T07:06:06Z",
  "modifiedAt": "2024-03-29T07:09:25Z",
  "orgId": "b83f05bf-06a4-45f9-8307-733f4fa0d74c",
  "userId": "55624781-a497-420b-82f0-51568d50a8e3",
  "notificationId": "6500b5bf-ade0-403e-8339-0d5685d7aab3",
  "resourceId": "782c5b18-8743-4edc-8c5d-015f3f5b8f85",
  "resourceType": "ENCODING",
  "type": "WEBHOOK",
  "eventType": "ENCODING_STATUS_CHANGED",
  "category": "ENCODING",
  "state": "FIRED",
  "triggeredAt": "2024-03-29T07:09:29.559376532Z",
  "triggeredForResourceId": "782c5b18-8743-4edc-8c5d-015f3f5b8f85",
  "internal": false,
  "encodingStatus": { "type": "Encoding", "progress": 0, "status": "RUNNING" },
  "webhookId": "6500b5bf-ade0-403e-8339-0d5685d7aab3"
}`

/** As the source of Livepeer's server makes it; its documentation lists fields only. */
export const livepeer = (timestamp: number) =>
  JSON.stringify({
    id: '3f7d1e2c-5a7b-4f0e-9c55-0d8d1b6c2a10',
    webhookId: 'b6a1f3d2-7c1e-4c7e-8b9e-1f2a3b4c5d6e',
    createdAt: 1772366400123,
    timestamp,
    event: 'asset.ready',
    payload: { asset: { id: 'asset-1', snapshot: { id: 'asset-1', status: { phase: 'ready' } } } },
  })

export const zoom = {
  /** Shortened by some files and texts. */
  recording: `{
  "payload": {
    "account_id": "account_id",
    "object": {
      "uuid": "WEz4RT2lSyKx2MD9Z+lYfA==",
      "id": 87565330005,
      "account_id": "account_id",
      "host_id": "host_id",
      "topic": "Recordings download URL/access token 01",
      "type": 2,
      "start_time": "2023-12-01T20:01:56Z",
      "timezone": "America/New_York",
      "host_email": "elisa@tests.com",
      "duration": 1,
      "total_size": 3500663,
      "recording_count": 3,
      "share_url": "https://us02web.zoom.us/rec/share/ZUrD3XZS2qn5nW5IZLynVU",
      "recording_files": [
        {
          "id": "4608677c-357d-439d-bbec-64bb69f5a9da",
          "meeting_id": "WEz4RT2lSyKx2MD9Z+lYfA==",
          "recording_start": "2023-12-01T20:02:05Z",
          "recording_end": "2023-12-01T20:03:14Z",
          "file_type": "MP4",
          "file_extension": "MP4",
          "file_size": 1285981,
          "play_url": "https://us02web.zoom.us/rec/play/1V_tamcytBlEGFy49aEe-YbJDejjF9",
          "download_url": "https://us02web.zoom.us/rec/webhook_download/1V_tamcytBlE9U",
          "status": "completed",
          "recording_type": "shared_screen_with_speaker_view"
        }
      ],
      "password": "password",
      "recording_play_passcode": "passcode",
      "on_prem": false
    }
  },
  "event_ts": 1701461193266,
  "event": "recording.completed",
  "download_token": "eyJ..."
}`,
  validation: `{
  "payload": {
    "plainToken": "qgg8vlvZRS6UYooatFL8Aw"
  },
  "event_ts": 1654503849680,
  "event": "endpoint.url_validation"
}`,
}

export const clerk = `{
  "data": {
    "birthday": "",
    "created_at": 1654012591514,
    "email_addresses": [
      {
        "email_address": "example@example.org",
        "id": "idn_29w83yL7CwVlJXylYLxcslromF1",
        "linked_to": [],
        "object": "email_address",
        "verification": {
          "status": "verified",
          "strategy": "ticket"
        }
      }
    ],
    "external_accounts": [],
    "external_id": "567772",
    "first_name": "Example",
    "gender": "",
    "id": "user_29w83sxmDNGwOuEthce5gg56FcC",
    "image_url": "https://img.clerk.com/xxxxxx",
    "last_name": "Example",
    "last_sign_in_at": 1654012591514,
    "object": "user",
    "password_enabled": true,
    "phone_numbers": [],
    "primary_email_address_id": "idn_29w83yL7CwVlJXylYLxcslromF1",
    "primary_phone_number_id": null,
    "primary_web3_wallet_id": null,
    "private_metadata": {},
    "profile_image_url": "https://www.gravatar.com/avatar?d=mp",
    "public_metadata": {},
    "two_factor_enabled": false,
    "unsafe_metadata": {},
    "updated_at": 1654012591835,
    "username": null,
    "web3_wallets": []
  },
  "instance_id": "ins_123",
  "object": "event",
  "timestamp": 1654012591835,
  "type": "user.created"
}`

/** The delivery whose signature Svix publishes. */
export const svix = {
  secret: 'whsec_plJ3nmyCDGBKInavdOK15jsl',
  body: '{"event_type":"ping","data":{"success":true}}',
  headers: {
    'svix-id': 'msg_loFOjxBNrRLzqYUf',
    'svix-timestamp': '1731705121',
    'svix-signature': 'v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0=',
  },
}

export const github = {
  issue: `{
  "action": "opened",
  "issue": {
    "url": "https://api.github.com/repos/octocat/Hello-World/issues/1347",
    "number": 1347
  },
  "repository" : {
    "id": 1296269,
    "full_name": "octocat/Hello-World",
    "owner": {
      "login": "octocat",
      "id": 1
    }
  },
  "sender": {
    "login": "octocat",
    "id": 1
  }
}`,
  headers: { 'x-github-delivery': '72d3162e-cc78-11e3-81ab-4c9367dc0958', 'x-github-event': 'issues' },
  /** The text whose signature GitHub publishes. */
  signed: {
    secret: "It's a Secret to Everybody",
    body: 'Hello, World!',
    signature: 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17',
  },
}

/** `data.object` is shortened. */
export const stripe = `{
  "id": "evt_1NG8Du2eZvKYlo2CUI79vXWy",
  "object": "event",
  "api_version": "2019-02-19",
  "created": 1686089970,
  "data": {
    "object": {
      "id": "seti_1NG8Du2eZvKYlo2C9XMqbR0x",
      "object": "setup_intent"
    }
  },
  "livemode": false,
  "pending_webhooks": 0,
  "request": { "id": null, "idempotency_key": null },
  "type": "setup_intent.created"
}`

export const shopify = {
  product: `{
  "id": 9554194432293,
  "title": "T-Shirt",
  "status": "active",
  "vendor": "My Store",
  "product_type": "Shirts",
  "updated_at": "2025-04-22T14:30:00-05:00",
  "variants": [
    {
      "id": 123456789,
      "title": "Default Title",
      "price": "29.99",
      "sku": "TSHIRT-001",
      "taxable": true,
      "updated_at": "2025-04-22T14:30:00-05:00"
    }
  ],
  "tags": "cotton, comfortable"
}`,
  headers: {
    'x-shopify-topic': 'products/update',
    'x-shopify-webhook-id': 'b54557e4-bdd9-4b37-8a5f-bf7d70bcd043',
    'x-shopify-triggered-at': '2025-04-22T19:30:00.123456789Z',
  },
}
