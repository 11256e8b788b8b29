// Messages that Amazon SNS signed, with its certificate, as published in the tests of the AWS SDK for Java (v2,
// sns-message-manager), and a key and a certificate of our own to sign others.

/** Valid until 2026-10-14. */
export const amazonCertificate = `-----BEGIN CERTIFICATE-----
MIIFxTCCBK2gAwIBAgIQBkyRNHAyygLkObkxH5ju+zANBgkqhkiG9w0BAQsFADA8
MQswCQYDVQQGEwJVUzEPMA0GA1UEChMGQW1hem9uMRwwGgYDVQQDExNBbWF6b24g
UlNBIDIwNDggTTAxMB4XDTI1MTExMDAwMDAwMFoXDTI2MTAxNDIzNTk1OVowHDEa
MBgGA1UEAxMRc25zLmFtYXpvbmF3cy5jb20wggEiMA0GCSqGSIb3DQEBAQUAA4IB
DwAwggEKAoIBAQChbVNQ+DEaT5WN+l+bg0iEeF666Z6LDFc1KJr4lNl0odcXQSsk
KsZYCMVdp4I/Ikk9zWyckRTMkmQGYimpD+bTsMCP5C/sJIU0E9Y2OXjjl5Videkq
qnRL9VdE5N41Rvks7S/5MpYcSmCsmaHfwcv82Gvx2zm9CrA5Xu7K2ZqhzRQPCRSP
mHTHQr4ED63ujE+qTpPgQZ0TvgmcrAc08Z75Z7Zzs17aTNc3YhAtQx9WowN8uiHk
kgc+ONNdtwKvWZNmnbmxMHYtYc291WCP1K1Nh4TV5XNyjIebzQKDrqTCN0ItAr1x
e6Bl3BYS3SG9XHAy0q3ekITzQsKypcuaK6dTAgMBAAGjggLhMIIC3TAfBgNVHSME
GDAWgBSBuA5jiokSGOX6OztQlZ/m5ZAThTAdBgNVHQ4EFgQUBQEUzzzuVJAKzAlR
d0Q//W6HvZUwHAYDVR0RBBUwE4IRc25zLmFtYXpvbmF3cy5jb20wEwYDVR0gBAww
CjAIBgZngQwBAgEwDgYDVR0PAQH/BAQDAgWgMBMGA1UdJQQMMAoGCCsGAQUFBwMB
MDsGA1UdHwQ0MDIwMKAuoCyGKmh0dHA6Ly9jcmwucjJtMDEuYW1hem9udHJ1c3Qu
Y29tL3IybTAxLmNybDB1BggrBgEFBQcBAQRpMGcwLQYIKwYBBQUHMAGGIWh0dHA6
Ly9vY3NwLnIybTAxLmFtYXpvbnRydXN0LmNvbTA2BggrBgEFBQcwAoYqaHR0cDov
L2NydC5yMm0wMS5hbWF6b250cnVzdC5jb20vcjJtMDEuY2VyMAwGA1UdEwEB/wQC
MAAwggF/BgorBgEEAdZ5AgQCBIIBbwSCAWsBaQB3ANdtfRDRp/V3wsfpX9cAv/mC
yTNaZeHQswFzF8DIxWl3AAABmnAb33MAAAQDAEgwRgIhANXAgMEZWU326cqxqwnf
ntD0XcBjRbmvVMOp3hZ8boPXAiEAkI3NTMXcdLCChHak1ipOae7K7r3spMGUMk6Q
cEUKqBEAdgDCMX5XRRmjRe5/ON6ykEHrx8IhWiK/f9W1rXaa2Q5SzQAAAZpwG9+u
AAAEAwBHMEUCIQD+Qyok8NYaFuQkccW+XIMmxHxj6Yka2wjtg6UN/tbU5wIgcp4z
8MyC/dUfeLRuHAt0owtVgEu7xXqrMBOYlbXrfC4AdgDLOPcViXyEoURfW8Hd+8lu
8ppZzUcKaQWFsMsUwxRY5wAAAZpwG9+yAAAEAwBHMEUCIQCmu1jQUG9A2br7OqwM
FvQXtBX10yIvvDa6a2Ov1Zgg6gIgKlqRvN6WhX0pSHAN2bKmjRwIUI3X9kjS/A/m
DYULaV4wDQYJKoZIhvcNAQELBQADggEBAIbTQWQhqrG6SzwLq79tKCpI0aL0xlD+
/jrGPxpwTlK7rtAArHiEVh/bsmwLYRlIxPBiU+NE/kqeT0lhJA6/e3X3KRmnpJ6u
Z70PJGYwmZbSRsFom0vGFBMncX0qYx1iD0dooPeAkkSnM5j81rBh+FepV3HfF+tA
9gaglWLsU7Z/A0fdn9D32UPreVHloOut5EyEinvXRUAWZco9CRloyEXJr7Mxq9MZ
vYOK+5wuSPHnPij+fGlQsPxEgoTnCmU03PqNS49kL13jjEnYYdijqL+4rfHtuZbc
4hlVoZfttwg8wD3m5brhQ+GkBBNYN8HFtdVy/BnFi+SPJqv6BgB3Y00=
-----END CERTIFICATE-----
`

/** A time at which it is valid, in ms. */
export const amazonTime = Date.parse('2026-03-07T00:00:00Z')

const TopicArn = 'arn:aws:sns:us-west-2:131990247566:dongie-standard-topic'
const SigningCertURL =
  'https://sns.us-west-2.amazonaws.com/SimpleNotificationService-7506a1e35b36ef5a444dd1a8e7cc3ed8.pem'
const subscription = `${TopicArn}:b24e11a2-06bd-4e73-aa29-0ed2de3b41b5`
const UnsubscribeURL = `https://sns.us-west-2.amazonaws.com/?Action=Unsubscribe&SubscriptionArn=${subscription}`
const confirmation = (Token: string) => ({
  Token,
  SubscribeURL: `https://sns.us-west-2.amazonaws.com/?Action=ConfirmSubscription&TopicArn=${TopicArn}&Token=${Token}`,
})

export const amazonMessages: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'a notification': {
    Type: 'Notification',
    MessageId: 'c0e5a280-53c9-5a98-93bb-c0a560b3d192',
    TopicArn,
    Message: 'This notification has no subject.',
    Timestamp: '2026-03-06T19:55:38.903Z',
    SignatureVersion: '1',
    Signature:
      'h5/2kLNyPKvMH+ipOA1kueaA1GLFlcKbO/9o6GbH7BtKk/8lM8krPFDrV+Lwuq8yZDXTxeSXHR8pG1w9MkKQ3VlsHhMigy+5ejIsb+ZfpkDDO6dOACbkTg1twy9tLeKCyPfU01OokKTR6jlKJGCgXXDQm5Q1Fs4NfUz22xGqteycG1GIioqq2Hvd1PLsDkcoyUAhciugGFcZKIGjUbBtdhMTPFX1ed8iH+Y/p6o/eD0G2i614oRSXYRJyV2iNpl54LCCiCrAafAJAM5NXAJJq9CWyTjxHFC18FnPqSukW1/6Qa502oujhPJ/pyl+6mMBoF6LjnpbIyR8/Gmm+RY6fg==',
    SigningCertURL,
    UnsubscribeURL,
  },
  'a notification with a subject': {
    Type: 'Notification',
    MessageId: '26858270-545e-5848-82a2-e05566af3dcf',
    TopicArn,
    Subject: 'My message subject',
    Message: 'Hello! This message has a subject.',
    Timestamp: '2026-03-06T19:53:21.424Z',
    SignatureVersion: '1',
    Signature:
      'jvNSgHVOF9KUOKI3bmQZhURD0kDN6txhfjiyuvnV95Dw6b2SRa7nq3AhM8agP0KUCIrRgKHqUlN6K2XBA35Lzkx1eI5RT0oXIN00pvvzGxSz0ddnuSGmDJM7bd/b1vl2RlLjz+KvkhzEtspxLnxjLsGl2EpOmztt+um7owb4475sOLdGTx1QiFV/8HqB2J0DyjeWdRZvu7Xpsf1Yd2rgmijFoz8x89Vw8pIksjczr4q16pxdh/XKWjbN2uPoC+3EeYdljL8KUvLYH9ueHSs5E9qq2iLdze4+FtANnE73XRvvSGE0KI+FGOvz1igest6qon3g1/CVy4mq3n19TsCSmA==',
    SigningCertURL,
    UnsubscribeURL,
  },
  'a notification with a signature of version 2': {
    Type: 'Notification',
    MessageId: '9d2c5580-b61d-550c-8583-37a582870907',
    TopicArn,
    Message: 'This message uses signature version 2.',
    Timestamp: '2026-03-06T20:00:26.893Z',
    SignatureVersion: '2',
    Signature:
      'kGNJ7FIM5DJxRv9bdoSJBty2WHpADFWrJ0ZQU/A2sALy6tBE5hqfUvPRlklTJ+PACFMguoFOO7W6ac/Bs4gR+JBRFhx4598X8/HWzrmaLrtB2f7nzViHbpzYN+u+OewXhxjj2lNsu0bLKv6fogkACytDIOhjZylbfJoPphDYAB7T3Ila7u+K3m2wLHH4k1cPYKyBf5FI/kAoQAVsY6qFHeb6CWfHsdM98I2gwyEvwJSzW0iyYBfqckmthQwH3Ex53jrhQlZylXFDYmstSJAdvbLeGqIUxKyk+O25wYgBjbbbeR+2qE2UCGEQrk1Bq018wmTxdHZmDhoBjJXiGmFkfg==',
    SigningCertURL,
    UnsubscribeURL,
  },
  'a confirmation of a subscription': {
    Type: 'SubscriptionConfirmation',
    MessageId: 'f3f2fc87-c426-4c2f-9044-b55890c0939c',
    TopicArn,
    Message: `You have chosen to subscribe to the topic ${TopicArn}.\nTo confirm the subscription, visit the SubscribeURL included in this message.`,
    ...confirmation(
      '2336412f37fb687f5d51e6e2425929f52e8e353134fe72d55ef8b330217d82da14007cbccefffd35b695feb8f0294d01fd9644f41e1ddfad261519a2c0bac743ff375eeb64530147d2da57f3acc54739da14c8dbd48a9d58ce996eff0d498ea6b4b9f58720d8959b52b99b8de148081720d7da17434e376614a00c992e7823e4',
    ),
    Timestamp: '2026-03-06T19:31:32.895Z',
    SignatureVersion: '1',
    Signature:
      'Ce2Ax8UbEq0RrVH7gsjP9WZ9bzif7dUkAY4OH99Pv7FSrvs8cK+uiH3a6ig54rXWUnZRUejk8K6KeK5Q80O9iJp8KbPRKdQ0PkJ3YASdabhfK0e7evC05YR2pFoS6nNaqNzT7HrR1d1Z9iLoFxluo2Dzb7kWVB7e9jp/y+ZBXRzRIaZgscM84kahBc6QgXOFJA1/PFA4cB5qaa6tBcUFtTE63o9vJ4wMmKk93W9MoszC+dNJeVFr8VHmt3toR+3JauBCZnGdgXgsDhni4PduSfWJJxEpuOK41iYf1hW+xFNFFsv46siTFiHdHiYDfI7/VlaY4spMgkq3EndRr7rHzQ==',
    SigningCertURL,
  },
  'a confirmation of the end of a subscription': {
    Type: 'UnsubscribeConfirmation',
    MessageId: '0b71e34e-42c3-486a-9e32-b1928ec994b5',
    TopicArn,
    Message: `You have chosen to deactivate subscription ${subscription}.\nTo cancel this operation and restore the subscription, visit the SubscribeURL included in this message.`,
    ...confirmation(
      '2336412f37fb687f5d51e6e2425929f52e8e353134fd0284eae5672847af082a982c7dd18215a1485e04e559716f8b42054594757f42dee2d63c46fd3a0fa59b4d688de03db956f8bf9f8cb3167587a28b74c5d325e6a7594d24a43ac534de2dfca614ca89cebd490342c721c30a76ea03def13673437a6a3e450642580119d0',
    ),
    Timestamp: '2026-03-06T20:02:25.038Z',
    SignatureVersion: '2',
    Signature:
      'RLW/cGWZAdY96iEcvXGmAZQ851DUyWehJIUMHT3Qa0/kX7Wu2QimI44TfE8d9hTqyYFreA6ln4AS67m225DuySpBeiUBtzB/ibiU7jdZmfSiT/I/RTEU3eD0lHHZIYW0M7HAlhHyaSXdcSAbtfnhMBMION93IVl6UOR4kWYdJaJ17/u3by3zlSRs8wCIpj06S6BzuzxrINZPJl+NKZYCVdMlrjuT4etX/UfZkC0Tjchpmu/CQcuimAgswlesm8cVue0WqNPXkOr8h7HmsiGVXPN1jjkYKf2/tVJyBxur/lSksMopER8wtAIsrqY1caAZSI8YJkIndg/b+7eCwkjTBA==',
    SigningCertURL,
  },
}

/** Signs nothing but messages of tests. */
export const ownKey = `-----BEGIN PRIVATE KEY-----
MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQD1wqRtSQzLIRw9
a/g2KTQO6xLu0mVXLue5L1azB/4Wzx8B40nzSTyzCpRmI6RBcF1oVwkuMbm0waGW
q2nScbuHSG+7hWAhj8ZWQu2hDIa+XkBT9AlUsmB16D6X29laWNnlnfwTp6QlUpta
VH6NX8/VqYIDOn7dqfe04oYfwYn1DlRe0iLVvZzgfvPB2K/k7qJUECxAIDbphC0Z
Pe1YIv3CWdODr9o5MuAVWtQXsWztReqZNBe7WqfFYEK96ASQnZ3T2fLucWgCvgzF
4ehNpXg+ovfl0Yox8nhcIfeXsOJOJKg09c8QqhUdM7qO3ZIBkc6SIpizCVd0bzgH
hYb1JQY3AgMBAAECggEAZOL/6+sSiOqxNJe3n8g/WiZvMcIGHwmez5sazMjpqkRh
dr1u9KPqepdLvzg/bCur9LLSDngUQ5s/ceIxQVY2BP2b/I9unKhwY6X69eN2Bv0b
DDvAftfxGEX8OAvkyJ1z6bp2qjzl+fpU0vqfrvqXj58Tw66GOQnWqZdaNvwU3Zcz
5IIpnEISotqJz9sNgAvg4TGVD9AjdxPwQBlWcDe+XkMnI4BbdE0xlmB1pKfXk8K1
l1rGOuh0iPS//THY8Ett+CFzFDl/y7TD+jsOhticc7Inp28leQ34tEgJm+bo2vDy
ikLLLNM/yQnTHwbC6mIBegxA7Dp9Bzk8pxtm9dtCQQKBgQD7AMOBXkhlRJczIU6k
gxPz4ZdlEp/BOTsRMvDz1/bERw+T6BqyyW4XxM7m2rEyAs6syNYX3ymXArjP38gy
IobSEHjiqKuptxtSYGrKtjHNTa886+Y9SRjTexpfCan8RzohdZ8aukTKD0Ah6h1m
6a37hjvNMICGtrokIh+SF895QQKBgQD6pyjNTO05C+pL2DEeasMKeITtSJS61euW
biNjBa2YqQVymYveCseE7N3a2m9RB2ZQl5brmZOjEQ8caRNoY1exn6KOg025aXwz
8UfkfD2wM0sFrAgwuj+jXRhYHwiIYvE67kaCet1Q1lF0now0bTiJknZw6vfBCdkH
RnhTVPhpdwKBgEKv3UGNzyY4pwNKoh5LRQ3SreqInDE2B192bVYb1tAnIRhm3lEJ
+1oNS/tBtzpWTJrTcS4+eEpKytdP2VyYl8FP5w4xSgp5P6UPQNBCv9CQBzLkafN2
bEYjusntQ2BnfCZPncn4Gzaj/qIEFXO2OidNbq4BaORhv+rBtimWceUBAoGAOWVT
q4dE/v4ifZGY1c0+skQctDUdkZbwpna79a3ULZPuompUo9i2DVMsDjRcryJRpHzB
21tEel+qpSfOgOXWq97RG28nuiBUh5RlkQV+Hr3wHPFiwr2zWtYzf+JDUu/NK2Bq
lvBJg3xAFMNFea/U9XOrWXoEl5iIsOjLHtHjPEsCgYEA0IrBsVDGfiwiMXlloQNH
B6Y2Sgl6x+gIQUUZLD9oXvIzskNVH6sVLRjVS/M/l6z8Ocdy3A2iy7Zj/R/7g7bw
WRJQn1dWK8YZlj1a8wBVn17+VIOVi1wIKiq+Dz4hItjaPofYzWufL6ciGZbZP7Df
QrGFdzJkXoeapXUMRjq3k3I=
-----END PRIVATE KEY-----
`

/** Of {@link ownKey}, self-signed by openssl, valid from 2020 to 2119. */
export const ownCertificate = `-----BEGIN CERTIFICATE-----
MIICrjCCAZYCAQEwDQYJKoZIhvcNAQELBQAwHDEaMBgGA1UEAwwRc25zLmFtYXpv
bmF3cy5jb20wIBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMBwxGjAY
BgNVBAMMEXNucy5hbWF6b25hd3MuY29tMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A
MIIBCgKCAQEA9cKkbUkMyyEcPWv4Nik0DusS7tJlVy7nuS9Wswf+Fs8fAeNJ80k8
swqUZiOkQXBdaFcJLjG5tMGhlqtp0nG7h0hvu4VgIY/GVkLtoQyGvl5AU/QJVLJg
deg+l9vZWljZ5Z38E6ekJVKbWlR+jV/P1amCAzp+3an3tOKGH8GJ9Q5UXtIi1b2c
4H7zwdiv5O6iVBAsQCA26YQtGT3tWCL9wlnTg6/aOTLgFVrUF7Fs7UXqmTQXu1qn
xWBCvegEkJ2d09ny7nFoAr4MxeHoTaV4PqL35dGKMfJ4XCH3l7DiTiSoNPXPEKoV
HTO6jt2SAZHOkiKYswlXdG84B4WG9SUGNwIDAQABMA0GCSqGSIb3DQEBCwUAA4IB
AQDYMjFEG2gfnr6Wf7plmMk07/jFaElbHa9+zE8ArIyE6ggGDE2IHii5witXQrNp
mIhijG5EySxWRQskst8KWC5HWU01vS8kdk8AONorII9VUq7hUc4UAgGRGROSZ8YQ
8wBU2zwBR9RSTb3pUToAibhyzRUbQbA2TflFnuCDdFup0gb6A71O/fUrjGcXuYim
cKeFR1kAUqoB2QEJMCg7AHlVcEJcA5Ha+W+4LwNnd557CRF1WBmJrYYcl5vkvbOa
0MV1RXBqsPyucYr6STkgoBI6oEMX3gLmCgOuxGwOHClwPoQHDfoMQTsCQelyldzy
++PtHKc9uAADPKwWmW1cwzaY
-----END CERTIFICATE-----
`
