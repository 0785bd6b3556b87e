Ñ
÷É
D
AddV2
x"T
y"T
z"T"
Ttype:
2	€
C
Placeholder
output"dtype"
dtypetype"
shapeshape:
<
Sub
x"T
y"T
z"T"
Ttype:
2	"serve*2.21.02v2.21.0-rc1-5-ga481b10260dù
i
INPUT0Placeholder*'
_output_shapes
:ÿÿÿÿÿÿÿÿÿ*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
i
INPUT1Placeholder*'
_output_shapes
:ÿÿÿÿÿÿÿÿÿ*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
N
addAddV2INPUT0INPUT1*
T0*'
_output_shapes
:ÿÿÿÿÿÿÿÿÿ
L
subSubINPUT0INPUT1*
T0*'
_output_shapes
:ÿÿÿÿÿÿÿÿÿ"ª*Ø
serving_defaultÄ
)
INPUT0
INPUT0:0ÿÿÿÿÿÿÿÿÿ
)
INPUT1
INPUT1:0ÿÿÿÿÿÿÿÿÿ'
OUTPUT0
add:0ÿÿÿÿÿÿÿÿÿ'
OUTPUT1
sub:0ÿÿÿÿÿÿÿÿÿtensorflow/serving/predict