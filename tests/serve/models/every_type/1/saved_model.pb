ÿ$
¢u
.
Identity

input"T
output"T"	
Ttype
C
Placeholder
output"dtype"
dtypetype"
shapeshape:"serve*2.21.02v2.21.0-rc1-5-ga481b10260dµ
y
BOOLPlaceholder*0
_output_shapes
:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ*
dtype0
*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
z
UINT8Placeholder*0
_output_shapes
:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ*
dtype0*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
{
UINT16Placeholder*0
_output_shapes
:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ*
dtype0*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
{
UINT32Placeholder*0
_output_shapes
:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ*
dtype0*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
{
UINT64Placeholder*0
_output_shapes
:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ*
dtype0*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
y
INT8Placeholder*0
_output_shapes
:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ*
dtype0*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
z
INT16Placeholder*0
_output_shapes
:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ*
dtype0*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
z
INT32Placeholder*0
_output_shapes
:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ*
dtype0*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
z
INT64Placeholder*0
_output_shapes
:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ*
dtype0	*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
y
FP16Placeholder*0
_output_shapes
:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ*
dtype0*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
y
BF16Placeholder*0
_output_shapes
:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ*
dtype0*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
y
FP32Placeholder*0
_output_shapes
:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ*
dtype0*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
y
FP64Placeholder*0
_output_shapes
:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ*
dtype0*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
z
BYTESPlaceholder*0
_output_shapes
:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ*
dtype0*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
U
IdentityIdentityBOOL*
T0
*0
_output_shapes
:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
X

Identity_1IdentityUINT8*
T0*0
_output_shapes
:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
Y

Identity_2IdentityUINT16*
T0*0
_output_shapes
:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
Y

Identity_3IdentityUINT32*
T0*0
_output_shapes
:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
Y

Identity_4IdentityUINT64*
T0*0
_output_shapes
:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
W

Identity_5IdentityINT8*
T0*0
_output_shapes
:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
X

Identity_6IdentityINT16*
T0*0
_output_shapes
:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
X

Identity_7IdentityINT32*
T0*0
_output_shapes
:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
X

Identity_8IdentityINT64*
T0	*0
_output_shapes
:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
W

Identity_9IdentityFP16*
T0*0
_output_shapes
:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
X
Identity_10IdentityBF16*
T0*0
_output_shapes
:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
X
Identity_11IdentityFP32*
T0*0
_output_shapes
:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
X
Identity_12IdentityFP64*
T0*0
_output_shapes
:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
Y
Identity_13IdentityBYTES*
T0*0
_output_shapes
:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ"ª*Ÿ
serving_default‹
.
BF16&
BF16:0ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
.
BOOL&
BOOL:0
ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
0
BYTES'
BYTES:0ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
.
FP16&
FP16:0ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
.
FP32&
FP32:0ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
.
FP64&
FP64:0ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
0
INT16'
INT16:0ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
0
INT32'
INT32:0ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
0
INT64'
INT64:0	ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
.
INT8&
INT8:0ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
2
UINT16(
UINT16:0ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
2
UINT32(
UINT32:0ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
2
UINT64(
UINT64:0ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
0
UINT8'
UINT8:0ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ9
BF16_OUT-
Identity_10:0ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ6
BOOL_OUT*

Identity:0
ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ:
	BYTES_OUT-
Identity_13:0ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ8
FP16_OUT,
Identity_9:0ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ9
FP32_OUT-
Identity_11:0ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ9
FP64_OUT-
Identity_12:0ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ9
	INT16_OUT,
Identity_6:0ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ9
	INT32_OUT,
Identity_7:0ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ9
	INT64_OUT,
Identity_8:0	ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ8
INT8_OUT,
Identity_5:0ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ:

UINT16_OUT,
Identity_2:0ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ:

UINT32_OUT,
Identity_3:0ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ:

UINT64_OUT,
Identity_4:0ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ9
	UINT8_OUT,
Identity_1:0ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿtensorflow/serving/predict